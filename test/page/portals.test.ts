import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Emulator } from '../../src/emulator/index.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { type PageResponse, PageVisitor } from '../support/page-visitor.ts';
import { startPortal } from '../support/portal.ts';
import { httpResponse, startRawServer } from '../support/raw-server.ts';

const parts = new AsyncDisposableStack();
let emulator: Emulator;
let hub: HubProcess;
let visitor: PageVisitor;
let csrf: string;

beforeAll(async () => {
  emulator = parts.use(await startPortal());
  rememberSecrets([emulator.clientSecret]);
  const toml = '[portals.declared]\npreset = "tado"\nissuer = "http://127.0.0.1:9"';
  hub = parts.use(await HubProcess.start({ here: true, toml }));
  visitor = parts.use(await PageVisitor.signedIn(hub));
  csrf = await visitor.csrf();
});
afterAll(() => parts.disposeAsync());

const send = (path: string, fields: Record<string, string> = {}) => visitor.post(path, { csrf, ...fields });
const target = ({ status, headers }: PageResponse) => [status, headers['location']];
const names = async () => (await hub.ask((control) => control.request('portals'))).portals.map(({ name }) => name);
const until = (wanted: readonly string[]) =>
  eventually(async () => (await names().catch(() => [])).join() === wanted.join());

/** The form for the emulator as a helper portal. */
const helper = () => ({
  cloud: 'helper',
  name: 'home',
  base_url: ` ${emulator.baseUrl} `,
  frontend_url: emulator.frontendUrl,
  client_id: emulator.clientId,
  client_secret: emulator.clientSecret,
});

it('the list of clouds shows those of the hub, and each one of the catalogue with its form', async () => {
  const { status, text } = await visitor.get('/portals');
  expect(status).toBe(200);
  expect(text).toMatch(/id="portal-declared"><h2>tado°</);
  expect(text).toContain('The hub’s configuration file declares this portal.');
  expect(text).not.toContain('href="/portals/declared/remove"');
  for (const cloud of ['helper', 'netatmo', 'home-connect', 'other']) expect(text).toContain(`id="cloud-${cloud}"`);
  const order = ['helper', 'enphase', 'nest', 'home-connect', 'myuplink', 'hue', 'viessmann', 'other'];
  const found = [...text.matchAll(/id="cloud-([a-z-]+)"/g)].map(([, cloud = '']) => cloud);
  expect(found.filter((cloud) => order.includes(cloud))).toEqual(order);
});

it.each([
  ['tado', ['nothing to register'], ['name="client_id"', 'name="client_secret"']],
  [
    'netatmo',
    ['/callback</code>', 'dev.netatmo.com', 'name="client_id"', 'name="client_secret"'],
    ['{redirect_uri}', 'name="redirect_uri"'],
  ],
  ['viessmann', ['/callback</code>', 'name="client_id"'], ['name="client_secret"']],
  // By a code: what only a login by redirect needs is for the configuration file.
  ['home-connect', ['name="client_id"'], ['name="client_secret"', '/callback', 'edirect', 'Client Secret too']],
  ['hue', ['name="redirect_uri" value="http://localhost:'], ['/callback</code>']],
  [
    'tesla',
    ['name="variables.region"', '<option value="eu" selected>', 'name="redirect_uri" value=""', 'docs/relay.md'],
    ['/callback'],
  ],
  ['helper', ['name="base_url"', 'name="frontend_url"', 'name="client_secret"'], ['/callback</code>', 'to register']],
  ['other', ['name="issuer"', '/callback</code>'], ['name="base_url"']],
])('the form for %s asks for what that cloud needs', async (cloud, shown, hidden) => {
  const { status, text } = await visitor.get(`/portals/add?cloud=${cloud}`);
  expect(status).toBe(200);
  for (const part of shown) expect(text).toContain(part);
  for (const part of hidden) expect(text).not.toContain(part);
});

it('the form calls each field by a name for people, and has a button that copies the redirect address wherever it is', async () => {
  const clouds = [...(await visitor.get('/portals')).text.matchAll(/id="cloud-([a-z-]+)"/g)].map(([, cloud]) => cloud);
  for (const cloud of clouds) {
    const { text } = await visitor.get(`/portals/add?cloud=${cloud}`);
    for (const [, label] of text.matchAll(/<label [^>]*>([^<]*)</g)) expect(label, cloud).toMatch(/^[A-Z]/);
    const hasRedirect = / id="redirect(_uri)?"/.test(text);
    expect(/ data-copy="redirect(_uri)?"/.test(text), cloud).toBe(hasRedirect);
  }
});

it('a form for an unknown cloud leads to the list of clouds', async () => {
  expect(target(await visitor.get('/portals/add?cloud=nowhere'))).toEqual([303, '/portals']);
  expect(target(await send('/portals/add', { cloud: 'nowhere' }))).toEqual([303, '/portals']);
});

it('the form says beside the field what is missing or wrong, and never shows a secret again', async () => {
  for (const [fields, status, text] of [
    [{ client_secret: '' }, 400, 'This is missing.'],
    [{ client_id: 'no-uuid' }, 400, 'It has 36 characters, as 0f4b3c52-'],
    [{ base_url: 'portal.example/login' }, 400, 'The address has nothing after its name'],
    [{ base_url: 'http://portal.example' }, 400, 'The address must begin with “https://”.'],
    [{ client_secret: 'another-secret' }, 409, 'The portal does not accept this client ID with this secret.'],
  ] as const) {
    const response = await send('/portals/add', { ...helper(), ...fields });
    expect(response).toMatchObject({ status, text: expect.stringContaining(text) });
    expect(response.text).toContain('aria-invalid="true"');
    expect(response.text).not.toContain(emulator.clientSecret);
    expect(response.text).not.toContain('another-secret');
    if (!('client_secret' in fields) || fields.client_secret !== '')
      expect(response.text).toMatch(/id="client_secret-problem">Enter it again/);
  }
  const declared = await send('/portals/add', { cloud: 'tado', name: 'declared' });
  expect(declared).toMatchObject({ status: 409, text: expect.stringContaining('can only be changed there') });
  expect(await names()).toEqual(['declared']);
});

it('a rejected client without a secret is told nothing of a secret', async () => {
  const other = { cloud: 'other', name: 'cloud', issuer: emulator.frontendUrl, client_id: 'nobody' };
  const { status, text } = await send('/portals/add', other);
  expect([status, text]).toEqual([409, expect.stringContaining('The portal does not accept this client ID. Compare')]);
  expect(text).not.toContain('client_secret-problem');
});

it('an address at which something else answers, or nothing, is wrong at its field, and nothing is stored', async () => {
  await using other = await startRawServer((socket) => socket.end(httpResponse(404, '{"error":"not_found"}')));
  const { baseUrl, frontendUrl } = emulator;
  for (const [fields, wrong] of [
    [{ base_url: other.origin }, ['base_url']],
    [{ base_url: 'http://127.0.0.1:9' }, ['base_url']],
    [{ frontend_url: 'http://127.0.0.1:9' }, ['frontend_url']],
    [{ frontend_url: other.origin }, ['frontend_url']],
    [{ base_url: other.origin, frontend_url: other.origin }, ['base_url', 'frontend_url']],
    [{ cloud: 'other', issuer: other.origin }, ['issuer']],
    [{ base_url: frontendUrl, frontend_url: baseUrl }, frontendUrl === baseUrl ? null : ['base_url', 'frontend_url']],
  ] as const) {
    if (wrong === null) continue;
    const { status, text } = await send('/portals/add', { ...helper(), ...fields });
    const found = [...text.matchAll(/id="(\w+)-problem">The portal does not answer at this address/g)].map(
      ([, key]) => key,
    );
    expect([status, found]).toEqual([400, wrong]);
    expect(text).not.toContain('does not accept this client ID');
  }
  expect(await names()).toEqual(['declared']);
});

it('the pages that change or remove a cloud say at once that the configuration declares it, or that it is gone', async () => {
  for (const [name, code, why] of [
    ['declared', 409, 'can only be changed there'],
    ['gone', 404, 'Somebody has removed this portal.'],
  ] as const)
    for (const path of [`/portals/${name}/remove`, `/portals/add?again=${name}`]) {
      const { status, text } = await visitor.get(path);
      expect([status, text]).toEqual([code, expect.stringContaining(why)]);
      expect(text).not.toContain('action="/portals/');
    }
});

it('a cloud is added once, however often its form is sent, and is removed after a question unless it is in use', async () => {
  // Twice at once, as after a double tap.
  const twice = await Promise.all([send('/portals/add', helper()), send('/portals/add', helper())]);
  const [status, result] = target(twice[0]);
  expect(target(twice[1])).toEqual([status, result]);
  expect(status).toBe(303);
  // Until the next hub runs, the page waits and loads itself again.
  const shown = await eventually(async () => {
    const page = await visitor.get(String(result));
    if (page.text.includes('The hub starts with the new portal')) expect(page.headers['refresh']).toBe('1');
    return page.text.includes('The portal accepts the hub.');
  });
  expect([shown, await names()]).toEqual([true, ['declared', 'home']]);
  expect(target(await send('/portals/add', helper()))[0]).toBe(303);
  await eventually(async () => hub.events('hub_started').length === 3);
  await until(['declared', 'home']);
  expect((await visitor.get('/portals/add?cloud=helper')).text).toContain('name="name" value="home-2"');
  const [, card = ''] = (await visitor.get('/portals')).text.split('id="portal-home"');
  const { host } = new URL(emulator.frontendUrl);
  expect(card).toMatch(new RegExp(`^><h2>${host}</h2>.*Address</dt><dd>${emulator.frontendUrl}</dd>`, 's'));
  expect(card.split('</li>', 1)[0]).not.toContain('Redirect address');
  const again = await visitor.get('/portals/add?again=home');
  expect(again.text).toContain(`Enter the data of ${host} again`);
  expect(again.text).toContain(`name="base_url" value="${emulator.baseUrl}"`);
  expect(again.text).toContain(`name="client_id" value="${emulator.clientId}"`);
  expect(again.text).toContain('name="client_secret" value=""');

  const question = await visitor.get('/portals/home/remove');
  expect(question.text).toContain('The hub deletes what was entered for this portal.');
  await hub.addAppliance('wallbox', 'Monitoring', 'home');
  const used = (await visitor.get('/portals')).text;
  expect(used).toContain('Used by wallbox. To remove this portal');
  expect(used).not.toContain('/portals/home/remove');
  for (const inUse of [await visitor.get('/portals/home/remove'), await send('/portals/home/remove')])
    expect(inUse).toMatchObject({ status: 409, text: expect.stringContaining('still use this portal') });
  await hub.ask((control) => control.request('removeAppliance', { name: 'wallbox' }));
  expect(target(await send('/portals/home/remove'))).toEqual([303, '/']);
  await until(['declared']);
  expect((await send('/portals/home/remove')).text).toContain('Somebody has removed this portal.');
  expect(hub.events('portal_removed')).toHaveLength(1);
});

it('a cloud is added even if the browser is closed before the response', async () => {
  const leaving = await PageVisitor.signedIn(hub);
  emulator.addFault({ endpoint: 'config', kind: 'delay', seconds: 1 });
  const before = emulator.requests.length;
  const abandoned = leaving.post('/portals/add', { csrf: await leaving.csrf(), ...helper() }).catch(() => null);
  await eventually(async () => emulator.requests.length > before);
  await leaving[Symbol.asyncDispose]();
  expect(await abandoned).toBeNull();
  await until(['declared', 'home']);
});

it('a cloud that could not be reached leads back to what was entered, which may have the wrong address', async () => {
  // Without the scheme, as people type it.
  const [base_url, frontend_url] = ['127.0.0.1:9', '127.0.0.1:9'];
  const [, result] = target(await send('/portals/add', { ...helper(), name: 'mistyped', base_url, frontend_url }));
  const shown = () => visitor.get(String(result));
  await eventually(async () => !(await shown()).text.includes('The hub starts with the new portal'));
  const again = 'again&#61;mistyped">Enter again</a>';
  expect((await shown()).text).toContain(again);
});

it('a rejected client of a preset that asks for none is shown, and an empty field keeps the secret that is stored', async () => {
  const others = await names();
  let isRejecting = false;
  await using server = await startRawServer((socket) =>
    socket.end(httpResponse(isRejecting ? 401 : 503, '{"error":"invalid_client"}')),
  );
  const endpoints = { token_endpoint: `${server.origin}/token`, authorization_endpoint: `${server.origin}/authorize` };
  const add = (name: string, keys: Record<string, unknown>, client_secret: string | null) =>
    hub.ask((control) => control.request('addPortal', { name, keys, client_secret }));
  const device_authorization_endpoint = `${server.origin}/device`;
  const { token_endpoint } = endpoints;
  await add('tado', { preset: 'tado', token_endpoint, device_authorization_endpoint }, null);
  await until([...others, 'tado']);
  await add(
    'tibber',
    { preset: 'tibber', ...endpoints, client_id: 'a', redirect_uri: 'http://localhost:8480/callback' },
    'kept',
  );
  await until([...others, 'tado', 'tibber']);
  const again = {
    cloud: 'tibber',
    name: 'tibber',
    again: 'yes',
    redirect_uri: 'https://relay.example/callback',
    client_secret: '',
  };
  expect((await visitor.get('/portals/add?cloud=tibber&again=tibber')).text).toContain('the hub keeps the secret');
  isRejecting = true;
  const { status, text } = await send('/portals/add', { cloud: 'tado', name: 'tado', again: 'yes' });
  expect([status, text]).toEqual([
    409,
    expect.stringContaining('role="alert">The portal does not accept the client ID'),
  ]);
  isRejecting = false;
  const before = server.requests.length;
  const [, result] = target(await send('/portals/add', { ...again, client_id: 'a' }));
  expect(result).toContain('name=tibber');
  expect(server.requests.slice(before).some(({ body }) => body.includes('client_secret=kept'))).toBe(true);
  await eventually(async () => !(await visitor.get(String(result))).text.includes('The hub starts with'));
  await hub.ask((control) => control.request('removePortal', { name: 'tado' }));
  await until([...others, 'tibber']);
  await hub.ask((control) => control.request('removePortal', { name: 'tibber' }));
  await until(others);
});
