import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { PairingEventMessage } from '../../src/control/messages.ts';
import type { Emulator } from '../../src/emulator/index.ts';
import { HubClient, type HubResponse, sentBrowser } from '../lan/hub-client.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { logFolder, rememberSecrets } from '../support/logs.ts';
import { startPortal } from '../support/portal.ts';
import { setUpOnce } from '../support/set-up.ts';

let emulator: Emulator;
let hub: HubProcess;
let client: HubClient;
/** All nonces, keys and responses of the tests. */
const nonces: string[] = [];
const keys: string[] = [];
const responses: HubResponse[] = [];

setUpOnce(async (parts) => {
  parts.defer(() => rememberSecrets([...nonces, ...keys]));
  emulator = parts.use(await startPortal());
  hub = parts.use(await HubProcess.start({ emulator, here: true, lan: 'mdns = false' }));
  client = parts.use(await HubClient.of(hub));
});

type Waiting = Extract<PairingEventMessage, { event: 'waiting' }>;

/** Begins a pairing, and adds the appliance if it does not exist yet. */
async function begin(name: string, address = '127.0.0.1'): Promise<{ link: URL; path: string }> {
  const { appliances } = await hub.status();
  if (!appliances.some((appliance) => appliance.name === name)) await hub.addAppliance(name);
  const { authorize_url, short_url } = await hub.ask(async (control): Promise<Waiting> => {
    const { pairing } = await control.request('pair', { name });
    const reports = control.followPairing(pairing, new AbortController().signal);
    for await (const report of reports) if (report.event === 'waiting') return report;
    throw new Error('no link');
  });
  const short = new URL(short_url ?? '');
  expect(short.origin).toBe(`http://${address}:${hub.httpPort}`);
  expect(short.pathname).toMatch(/^\/l\/[\w-]{16}$/);
  const claims = (new URL(authorize_url).searchParams.get('state') ?? '').split('.')[1] ?? '';
  nonces.push(/\/callback\/([\w-]{22})/.exec(Buffer.from(claims, 'base64url').toString())?.[1] ?? '');
  keys.push(short.pathname.slice('/l/'.length));
  return { link: new URL(authorize_url), path: short.pathname };
}

async function open(path: string, options: Parameters<HubClient['http']>[1] = {}): Promise<HubResponse> {
  const response = await client.http(path, options);
  responses.push(response);
  return response;
}

function logIn(link: URL, deny = false, browser: Record<string, string> = {}): Promise<HubResponse> {
  return client.logIn(emulator, link.searchParams.get('state') ?? '', deny, browser);
}

async function expectRedirect(path: string, link: URL): Promise<void> {
  const { status, headers, text } = await open(path);
  expect({ status, location: headers['location'], text }).toEqual({ status: 303, location: link.href, text: '' });
  expect(headers).toMatchObject({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' });
}

async function expectPage(path: string, status: number, text: string, language = 'en'): Promise<void> {
  const response = await open(path, { headers: { accept: 'text/html', 'accept-language': language } });
  expect({ status: response.status, text: response.text }).toEqual({ status, text: expect.stringContaining(text) });
  expect(response.headers).toMatchObject({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' });
}

test('a short link leads to its pairing link, and later shows the result, in both languages and after a restart', async () => {
  const open = await begin('heat-pump');
  const { link, path } = await begin('wallbox');
  await expectRedirect(path, link);
  await logIn(link);
  for (let run = 0; run < 2; run++) {
    await expectRedirect(open.path, open.link);
    await expectPage(path, 200, 'wallbox is connected');
    await expectPage(path, 200, 'wallbox ist verbunden', 'de');
    if (run === 0) await hub.kill('SIGTERM').then(() => hub.launch());
  }
});

test('a short link shows that its pairing was replaced or refused', async () => {
  const old = await begin('heater');
  const newer = await begin('heater');
  expect(newer.path).not.toBe(old.path);
  await expectPage(old.path, 200, 'A newer login link has replaced this one. Use the newer link.');
  await expectRedirect(newer.path, newer.link);
  await logIn(newer.link, true, sentBrowser(await open(newer.path)));
  await expectPage(newer.path, 200, 'did not allow the access');
});

test('a short link exists only on the HTTP port, and fetching it in advance changes nothing', async () => {
  const { link, path } = await begin('battery');
  const before = emulator.requests.filter(({ endpoint }) => endpoint === 'config').length;
  const ahead = { 'sec-purpose': 'prefetch', purpose: 'prefetch' };
  expect(await open(path, { method: 'HEAD' })).toMatchObject({ status: 303, headers: { location: link.href } });
  expect((await open(path, { headers: ahead })).status).toBe(303);
  expect((await open(path, { method: 'POST' })).status).toBe(405);
  expect((await open(path, { headers: { host: 'rebind.example' } })).status).toBe(421);
  expect((await client.https(path)).status).toBe(404);
  expect(emulator.requests.filter(({ endpoint }) => endpoint === 'config')).toHaveLength(before);
  expect((await hub.appliance('battery')).authorize_url).toBe(link.href);
  await expectRedirect(path, link);
});

test('a short link shows a page that waits while the portal has not given the pairing link, and then redirects', async () => {
  const { link, path } = await begin('meter');
  emulator.addFault({ endpoint: 'token', kind: 'commit_then_drop' });
  emulator.addFault({ endpoint: 'config', kind: 'delay', seconds: 2 });
  await logIn(link);
  await eventually(async () => (await open(path)).text.includes('One moment'), 2);
  const page = await open(path, { headers: { 'accept-language': 'de' } });
  expect(page).toMatchObject({ status: 200, text: expect.stringContaining('Einen Moment') });
  expect(page.text).toContain('<meta http-equiv="refresh" content="3">');
  const fresh = await eventually(async () => (await hub.appliance('meter')).authorize_url);
  expect(fresh).not.toBe(link.href);
  await expectRedirect(path, new URL(fresh));
});

test('a guessed short link is unknown, and the right one works after any number of guesses', async () => {
  const { link, path } = await begin('fridge');
  await expectRedirect(path, link);
  const key = path.slice('/l/'.length);
  const guesses = ['A'.repeat(16), key.slice(0, -1), `${key}A`, nonces.at(-1) ?? '', '..%2f..', '<b>', ''];
  for (const guess of guesses) await expectPage(`/l/${guess}`, 404, 'The hub does not know this login');
  await expectPage('/l/*', 404, 'Der Hub kennt diese Anmeldung nicht', 'de');
  for (const unrouted of ['/l', `${path}/`, `${path}/more`]) await expectPage(unrouted, 404, 'Page not found');
  for (let tries = 0; tries < 50; tries++) expect((await open(`/l/guess-${tries}`)).status).toBe(404);
  await expectRedirect(path, link);
});

test('neither the log nor a plain response contains a nonce or the key of a short link', () => {
  const ownLogs = readdirSync(logFolder()).filter((file) => file.startsWith(`hub.${process.pid}.`));
  const log = ownLogs.map((file) => readFileSync(join(logFolder(), file), 'utf8')).join('');
  expect(log).toContain('pairing_started');
  expect(new Set([...nonces, ...keys]).size).toBe(2 * nonces.length);
  for (const secret of [...nonces, ...keys]) {
    expect(secret).not.toBe('');
    expect(log).not.toContain(secret);
    for (const { headers, text } of responses) expect(JSON.stringify(headers) + text).not.toContain(secret);
  }
});
