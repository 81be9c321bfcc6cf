import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fastify from 'fastify';
import { describe, expect, it } from 'vitest';
import type { ReceivedResponse } from '../../src/core/pairings/authorization-response.ts';
import type { Emulator } from '../../src/emulator/index.ts';
import { serveCallback } from '../../src/page/callback/callback.ts';
import { HubClient, type HubResponse, sentBrowser } from '../lan/hub-client.ts';
import { HubProcess } from '../support/hub-process.ts';
import { logFolder, rememberSecrets } from '../support/logs.ts';
import { PageVisitor } from '../support/page-visitor.ts';
import { startPortal } from '../support/portal.ts';
import { setUpOnce } from '../support/set-up.ts';

const HUB_NAME = `<b>Cellar</b> & "attic' hub`;
const ESCAPED = HUB_NAME.replaceAll(/[<>&"']/g, (character) => `&#${character.charCodeAt(0)};`);

let emulator: Emulator;
let hub: HubProcess;
let client: HubClient;
/** Codes that tests made up: no log may contain them either. */
const forgedCodes: string[] = [];

setUpOnce(async (parts) => {
  parts.defer(() => rememberSecrets(forgedCodes));
  emulator = parts.use(await startPortal());
  hub = parts.use(await HubProcess.start({ emulator, here: true, env: { LATCHKEY_HUB_NAME: HUB_NAME } }));
  client = parts.use(await HubClient.of(hub));
});

let appliances = 0;

/** Begins a pairing for a new appliance. */
async function openPairing() {
  const name = `appliance-${++appliances}`;
  await hub.addAppliance(name);
  const url = await hub.beginPairing(name);
  const state = url.searchParams.get('state') ?? '';
  const claims = Buffer.from(state.split('.')[1] ?? '', 'base64url').toString();
  const path = /\/callback\/[\w-]+/.exec(claims)?.[0] ?? '';
  expect(path).toMatch(/^\/callback\/[\w-]{22}$/);
  /** Logs in at the portal. @returns the path and query of the portal's redirect */
  async function login(deny = false): Promise<string> {
    const { location } = await emulator.login({ state, user: 'demo', deny });
    const { pathname, search, port } = new URL(location);
    expect({ pathname, port }).toEqual({ pathname: path, port: String(hub.httpPort) });
    return pathname + search;
  }
  return { name, path, login, state: async () => (await hub.appliance(name)).state };
}

function rememberForgedCode(code: string): string {
  forgedCodes.push(code);
  return code;
}

function exchanges(): number {
  return emulator.requests.filter(({ form }) => form['grant_type'] === 'authorization_code').length;
}

function expectPage(response: HubResponse, status: number, text: string): void {
  expect({ status: response.status, text: response.text }).toEqual({ status, text: expect.stringContaining(text) });
  expect(response.headers).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
  });
  const policy = response.headers['content-security-policy'];
  for (const part of ["default-src 'none'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"])
    expect(policy).toContain(part);
  expect(policy).not.toMatch(/script-src|\*|unsafe-eval/);
  expect(response.text).toContain(ESCAPED);
  expect(response.text).not.toContain('<b>');
}

describe('a login that the portal redirects to the hub', () => {
  it('the result leads back to the host at which the installer opened the pairing, and never to a host that is not the hub', async () => {
    await using visitor = await PageVisitor.signedIn(hub);
    const begin = async (...hosts: readonly Record<string, string>[]) => {
      const { name, login } = await openPairing();
      const form = { csrf: await visitor.csrf() };
      const page = String((await visitor.post(`/appliances/${name}/pair`, form)).headers['location']);
      for (const headers of hosts) expect((await visitor.get(page, headers)).status).toBe(200);
      const { text } = await client.http(await login());
      return /href="https:\/\/([^"]+)\/pairings\//.exec(text)?.[1];
    };
    const [address, named] = [`127.0.0.1:${hub.httpsPort}`, `localhost:${hub.httpsPort}`];
    expect(await begin()).toBe(address);
    expect(await begin({ host: named })).toBe(named);
    // An open page on another device updates itself.
    expect(await begin({ host: named }, { host: address, 'sec-fetch-dest': 'empty' })).toBe(named);
    expect(await begin({ host: `192.0.2.7:${hub.httpsPort}` })).toBe(address);
  });

  it('a redirect pairs, and the page shows the same result on a reload, for another code and after a restart', async () => {
    const { name, path, login, state } = await openPairing();
    const redirect = await login();
    expectPage(await client.http(redirect), 200, `${name} is connected`);
    expect(await state()).toBe('active');
    const count = exchanges();
    const again = [
      redirect,
      path,
      `${path}?code=${rememberForgedCode('a-second-other-code')}`,
      `${path}?error=access_denied`,
    ];
    for (const target of again) expectPage(await client.http(target), 200, `${name} is connected`);
    await hub.kill('SIGTERM');
    await hub.launch();
    for (const target of again) expectPage(await client.http(target), 200, `${name} is connected`);
    expect(exchanges()).toBe(count);
    expect(await state()).toBe('active');
  });

  it('HEAD, POST and other methods do not use up the code of a redirect', async () => {
    const { name, login, state } = await openPairing();
    const redirect = await login();
    const count = exchanges();
    for (const method of ['HEAD', 'POST', 'PUT', 'OPTIONS'] as const)
      expect([404, 405]).toContain((await client.http(redirect, { method })).status);
    expect((await client.http(redirect, { headers: { host: 'rebind.example' } })).status).toBe(421);
    expect((await client.https(redirect)).status).toBe(404);
    expect(exchanges()).toBe(count);
    expect(await state()).toBe('pairing');
    expectPage(await client.http(redirect), 200, `${name} is connected`);
  });

  it('a redirect with access_denied ends the pairing, and the page says so', async () => {
    const { name, path, login, state } = await openPairing();
    const redirect = await login(true);
    expect(redirect).toBe(`${path}?error=access_denied`);
    // Anybody who saw the link may send this.
    const forged = await client.http(redirect);
    expectPage(forged, 200, 'did not allow the access');
    expect(forged.text).toContain('Open the login link again and log in.');
    expect(await state()).toBe('pairing');
    await using visitor = await PageVisitor.signedIn(hub);
    const { headers } = await visitor.get(`/p/${name}`);
    const browser = sentBrowser(await visitor.get(String(headers['location'])));
    expectPage(await client.http(redirect, { headers: browser }), 200, 'did not allow the access');
    expectPage(
      await client.http(`${path}?code=${rememberForgedCode('a-code-that-comes-late')}`),
      200,
      'did not allow the access',
    );
    expect(await state()).toBe('unpaired');
  });
});

describe('redirects without a valid login', () => {
  it('a redirect without a valid code changes nothing, and the pairing can still succeed', async () => {
    const { name, path, login, state } = await openPairing();
    const count = exchanges();
    const [one, two] = [rememberForgedCode('planted-code-one'), rememberForgedCode('planted-code-two')];
    expectPage(await client.http(path), 400, 'The portal sent the hub no code for this login');
    expectPage(await client.http(`${path}?code=`), 400, 'The portal sent the hub no code for this login');
    for (const query of [
      `code=${one}&code=${two}`,
      `code=${one}&error=access_denied`,
      'error=access_denied&error=access_denied',
      `code=${'x'.repeat(5000)}`,
      `error=${'x'.repeat(300)}`,
    ])
      expectPage(
        await client.http(`${path}?${query}`),
        400,
        'This is not an address that the portal opens after a login',
      );
    expect(await client.rawHttp(`GET ${path}?code=${'x'.repeat(100_000)} HTTP/1.1\r\nhost: localhost\r\n\r\n`)).toMatch(
      /^HTTP\/1.1 431 .*\r\n\r\nThe address or the headers are too long\.$/s,
    );
    expect(exchanges()).toBe(count);
    expect(await state()).toBe('pairing');
    expectPage(await client.http(await login()), 200, `${name} is connected`);
    expect(await state()).toBe('active');
  });

  it('a redirect with a guessed nonce has no effect', async () => {
    const { path, state } = await openPairing();
    const count = exchanges();
    const code = rememberForgedCode('a-guessers-code');
    const nonce = path.slice('/callback/'.length);
    const guesses = [
      'A'.repeat(22),
      nonce.slice(0, -1),
      `${nonce}A`,
      nonce.toLowerCase() === nonce ? nonce.toUpperCase() : nonce.toLowerCase(),
      `${nonce}%00`,
      '..%2f..',
      '*',
      '<b>',
      'A'.repeat(199),
    ];
    for (const guess of guesses) {
      const response = await client.http(`/callback/${guess}?code=${code}`);
      expectPage(response, 404, 'The hub does not know this login');
      expect(response.text).toContain('To the hub’s page</a>');
    }
    for (const target of ['/callback/', `${path}/`, `${path}/more`])
      expect((await client.http(`${target}?code=${code}`)).status, target).toBe(404);
    expect((await client.http(`/callback/%zz?code=${code}`)).status).toBe(400);
    expect((await client.http(`/callback/${'A'.repeat(2000)}?code=${code}`)).status).toBe(414);
    for (const error of ['access_denied', 'server_error'])
      expect((await client.http(`/callback/${guesses[0]}?error=${error}`)).status).toBe(404);
    expect(exchanges()).toBe(count);
    expect(await state()).toBe('pairing');
  });
});

it('the logs of the hub contain no authorization code', () => {
  const ownLogs = readdirSync(logFolder()).filter((file) => file.startsWith(`hub.${process.pid}.`));
  const log = ownLogs.map((file) => readFileSync(join(logFolder(), file), 'utf8')).join('');
  expect(log).toContain('pairing_started');
  for (const code of [...forgedCodes, ...emulator.secretsIssued('code')]) expect(log).not.toContain(code);
});

it('the hub takes a code from a redirect unchanged, whatever characters it has', async () => {
  const codes: unknown[] = [];
  const app = fastify();
  serveCallback(
    app,
    {
      async receiveResponse({ response }: ReceivedResponse) {
        codes.push(response.kind === 'code' ? response.code.reveal() : response.kind);
        return null;
      },
    },
    'Hub',
    () => 'https://hub.example',
  );
  for (const query of ['code=a?b=?', 'code=a%3Fb%26c%3Dd%2B%2F%25', 'x=1&code=a/b.c~d-e_f', 'code', ''])
    await app.inject(`/callback/nonce?${query}`);
  expect(codes).toEqual(['a?b=?', 'a?b&c=d+/%', 'a/b.c~d-e_f', 'nothing', 'nothing']);
});
