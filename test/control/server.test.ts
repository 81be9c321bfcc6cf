import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, type Dispatcher } from 'undici';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { connectControlClient } from '../../src/control/client.ts';
import { toWire } from '../../src/control/messages.ts';
import { type ControlServer, startControlServer } from '../../src/control/server.ts';
import { STATUS_FIELDS } from '../../src/core/administration.ts';
import { createLog } from '../../src/system/log.ts';
import { rememberSecrets } from '../support/logs.ts';
import { waitFor } from '../support/wait-for.ts';
import { FakeAdministration } from './fake-administration.ts';
import { connectionsOnWire } from './status-samples.ts';

const PASSPHRASE = 'a passphrase that is seen nowhere';
/** The refresh token of another program. */
const IMPORTED = 'the-refresh-token-of-another-program';
rememberSecrets([PASSPHRASE, IMPORTED]);

const link = { event: 'waiting', authorizeUrl: 'https://portal.example/authorize?state=1', expiresIn: 900 } as const;

let administration: FakeAdministration;
let server: ControlServer;
let logged: string[];
let client: Client;

beforeEach(async () => {
  administration = new FakeAdministration();
  administration.set({ name: 'wallbox', state: 'active', scope: 'Monitoring RemoteControl' });
  logged = [];
  server = await startControlServer({
    path: join(mkdtempSync(join(tmpdir(), 'lk-')), 'control.sock'),
    administration: administration,
    log: createLog('debug', { write: (line) => logged.push(line) }),
  });
  client = new Client('http://hub', { socketPath: server.path });
});

afterEach(async () => {
  await client.destroy();
  await server[Symbol.asyncDispose]();
});

async function sendRequest(
  method: string,
  path: string,
  options: { body?: string; headers?: Record<string, string> } = {},
) {
  const request = { method: method as Dispatcher.HttpMethod, path, ...options };
  const { statusCode, headers, body } = await client.request(request);
  const text = await body.text();
  return { status: statusCode, type: headers['content-type'], content: text === '' ? null : JSON.parse(text) };
}

const json = { 'content-type': 'application/json' };

function post(path: string, body: unknown) {
  return sendRequest('POST', path, { body: JSON.stringify(body), headers: json });
}

test('a field of status that every surface shows has the name of its description in JSON', () => {
  for (const [name, { member }] of Object.entries(STATUS_FIELDS))
    expect(Object.keys(toWire({ [name]: 0 }))).toEqual([member]);
});

test('every operation of the control API returns what the command line prints', async () => {
  expect(await sendRequest('GET', '/v1/status')).toMatchObject({
    status: 200,
    content: {
      hub: toWire(administration.hub),
      connections: [
        { name: 'wallbox', state: 'active', last_refresh: null, login_ends: null, appliances: ['wallbox'], own: true },
      ],
      appliances: [{ name: 'wallbox', connection: 'wallbox', state: 'active', last_refresh: null }],
    },
  });
  expect((await sendRequest('GET', '/v1/ca')).content).toEqual(administration.caStatus());
  const added = await post('/v1/appliances', { name: 'heatpump', scope: 'A B' });
  expect(added.status).toBe(201);
  expect(added.content).toEqual({
    name: 'heatpump',
    title: 'heatpump',
    client_id: administration.appliances.get('heatpump')?.clientId,
    client_secret: administration.issued[0],
    token_endpoint: 'https://192.168.1.7:8443/oauth/token',
    ca_fingerprint: 'pin-of-the-ca',
  });
  expect((await sendRequest('POST', '/v1/appliances/heatpump/secret')).content).toMatchObject({
    client_secret: administration.issued[1],
  });
  expect((await sendRequest('POST', '/v1/connections/wallbox/token')).content).toEqual({
    access_token: administration.accessToken,
    token_type: 'Bearer',
    expires_in: 3000,
    scope: 'Monitoring RemoteControl',
  });
  const wallbox = administration.connections().filter(({ name }) => name === 'wallbox');
  expect((await sendRequest('POST', '/v1/connections/wallbox/refresh')).content).toEqual(connectionsOnWire(wallbox)[0]);
  const imported = await post('/v1/connections/family/import', { refresh_token: IMPORTED });
  expect(imported).toMatchObject({ status: 200, content: { name: 'family', state: 'active' } });
  expect(administration.imports).toMatchObject([{ name: 'family', scope: null, portal: null, replace: false }]);
  expect(administration.imports[0]?.refreshToken.reveal()).toBe(IMPORTED);
  expect((await sendRequest('POST', '/v1/connections/family/token')).content).not.toHaveProperty('scope');
  const move = { body: '{"connections":["family"]}', headers: json };
  expect(await sendRequest('PUT', '/v1/appliances/heatpump/connections', move)).toMatchObject({
    status: 200,
    content: { name: 'heatpump', connection: 'family' },
  });
  const removal = { body: '{"even_if_used":true}', headers: json };
  const told = { status: 200, content: { portal_told: true } };
  expect(await sendRequest('DELETE', '/v1/connections/family', removal)).toMatchObject(told);
  expect(await sendRequest('DELETE', '/v1/connections/wallbox/grant')).toMatchObject({
    status: 200,
    content: { portal_told: true },
  });
  expect(administration.appliances.get('wallbox')?.state).toBe('unpaired');
  expect(await sendRequest('DELETE', '/v1/appliances/wallbox')).toMatchObject(told);
  expect(administration.appliances.has('wallbox')).toBe(false);
});

test.each([
  ['GET', '/v1/nothing', {}, 404, 'request_invalid'],
  ['HEAD', '/v1/connections/wallbox/token', {}, 404, null],
  ['GET', '/v1/%zz', {}, 400, 'request_invalid'],
  ['POST', '/v1/appliances', { body: '{"name":', headers: json }, 400, 'request_invalid'],
  ['POST', '/v1/appliances', { body: '["name"]', headers: json }, 400, 'request_invalid'],
  ['POST', '/v1/appliances', { body: '{"name":7}', headers: json }, 400, 'request_invalid'],
  ['POST', '/v1/appliances', { body: '{"name":"a","admin":true}', headers: json }, 400, 'request_invalid'],
  ['POST', '/v1/appliances', { body: 'name=a', headers: { 'content-type': 'text/plain' } }, 415, 'request_invalid'],
  ['POST', '/v1/appliances', { body: 'x'.repeat(100_000), headers: json }, 413, 'request_invalid'],
  ['POST', '/v1/appliances', { body: '{"name":"wallbox"}', headers: json }, 409, 'appliance_exists'],
  ['POST', '/v1/invites', { body: '{"ttl":1.5}', headers: json }, 400, 'request_invalid'],
  ['POST', '/v1/connections/toaster/token', {}, 404, 'connection_unknown'],
  ['POST', '/v1/appliances/wallbox/token', {}, 404, 'request_invalid'],
  ['DELETE', '/v1/connections/wallbox', {}, 409, 'connection_in_use'],
  ['DELETE', '/v1/appliances/a%2Fgrant', {}, 400, 'name_invalid'],
  ['DELETE', `/v1/appliances/${'a'.repeat(5000)}`, {}, 400, 'name_invalid'],
  ['GET', '/v1/pairings/none/events', {}, 404, 'pairing_unknown'],
])('the control API answers %s %s %o with %i %s', async (method, path, options, status, code) => {
  const refused = await sendRequest(method, path, options);
  expect(refused.status).toBe(status);
  if (code === null) return;
  expect(refused.type).toMatch(/^application\/json/);
  expect(refused.content).toEqual({ code, message: expect.stringMatching(/./) });
});

test('an unexpected error of the control API is logged without the request, and not returned', async () => {
  administration.token = () => Promise.reject(new TypeError('x is not a function'));
  expect(await sendRequest('POST', '/v1/connections/wallbox/token')).toMatchObject({
    status: 500,
    content: { code: 'unexpected', message: expect.not.stringContaining('not a function') },
  });
  expect(logged.join('')).toContain('x is not a function');
});

test('the log of the control API contains no secret', async () => {
  await sendRequest('POST', '/v1/appliances', { body: '{"name":"heatpump"}', headers: json });
  await sendRequest('POST', '/v1/connections/wallbox/token');
  await sendRequest('POST', '/v1/invites', { body: '{"ttl":60}', headers: json });
  administration.refresh = () => Promise.reject(new Error('boom'));
  await sendRequest('POST', '/v1/connections/wallbox/refresh');
  administration.importGrant = () => Promise.reject(new Error('boom'));
  await post('/v1/connections/wallbox/import', { refresh_token: IMPORTED });
  expect(logged).not.toEqual([]);
  for (const secret of [administration.accessToken, IMPORTED, ...administration.issued])
    expect(logged.join('')).not.toContain(secret);
});

test('the control API streams the events of a pairing until it ends', async () => {
  administration.script = [{ event: 'connecting', problem: null, expiresIn: 900 }];
  await using control = await connectControlClient([server.path]);
  const { pairing: id } = await control.request('pair', { name: 'wallbox' });
  const seen: string[] = [];
  for await (const report of control.followPairing(id, new AbortController().signal)) {
    seen.push(report.event);
    if (report.event === 'connecting') administration.pairings.get(id)?.push(link);
    if (report.event === 'waiting') administration.pairings.get(id)?.push({ event: 'paired', scope: 'ä' });
    if (report.event === 'paired') expect(report.scope).toBe('ä');
  }
  expect(seen).toEqual(['connecting', 'waiting', 'paired']);
});

test('the control client names the version of a hub of another version, once', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'lk-'));
  const old = createServer((_request, response) => response.writeHead(200, { 'latchkey-version': '0.0.1' }).end('[]'));
  await once(old.listen(join(directory, 'old.sock')), 'listening');
  const versions: string[] = [];
  for (const path of [join(directory, 'old.sock'), server.path]) {
    await using control = await connectControlClient([path], (version) => versions.push(version));
    for (let times = 0; times < 2; times += 1)
      expect(await control.request('history', { name: 'wallbox' })).toEqual([]);
  }
  expect(versions).toEqual(['0.0.1']);
  old.close();
});

test('a client that stops following a pairing is released without an error', async () => {
  administration.script = [link];
  await using control = await connectControlClient([server.path]);
  const { pairing: id } = await control.request('pair', { name: 'wallbox' });
  const stop = new AbortController();
  for await (const _ of control.followPairing(id, stop.signal)) {
    expect(administration.pairings.get(id)?.followers).toBe(1);
    stop.abort();
  }
  await waitFor(() => expect(administration.pairings.get(id)?.followers).toBe(0));
});

test('closing the control server ends event streams, idle connections and hanging requests at once', async () => {
  administration.script = [link];
  administration.portal = new Promise(() => {});
  await using control = await connectControlClient([server.path]);
  const { pairing: id } = await control.request('pair', { name: 'wallbox' });
  const following = expect(async () => {
    for await (const _ of control.followPairing(id, new AbortController().signal)) await Promise.resolve();
  }).rejects.toMatchObject({ code: 'hub_stopping' });
  const requested = client.request({ method: 'POST', path: '/v1/connections/wallbox/token' });
  const hanging = expect(requested).rejects.toThrow('other side closed');
  await using idle = await connectControlClient([server.path]);
  await idle.request('status');
  await waitFor(() => expect(administration.pairings.get(id)?.followers).toBe(1));

  await server[Symbol.asyncDispose]();
  await following;
  await hanging;
  expect(administration.pairings.get(id)?.followers).toBe(0);
});

test('the control API returns a backup, and accepts one and restarts the hub after its response', async () => {
  const backup = { copy: 'a.sealed.copy', made: '2031-05-05T06:00:00Z', appliances: 1, grants: 1 };
  expect(await post('/v1/backup', { passphrase: PASSPHRASE })).toMatchObject({ status: 200, content: backup });
  const { status, content } = await post('/v1/restore', { copy: 'a.sealed.copy', passphrase: PASSPHRASE });
  expect({ status, content }).toMatchObject({ status: 200, content: { restored: ['wallbox'], kept: ['heater'] } });
  await waitFor(() => expect(administration.restarts).toBe(1));
});

test.each([
  { path: '/v1/restore', body: { copy: 'a.sealed.copy', passphrase: PASSPHRASE } },
  { path: '/v1/reload', body: {} },
])('a request to $path is carried out even if its client disconnects before the response', async ({ path, body }) => {
  const portal = Promise.withResolvers<void>();
  administration.portal = portal.promise;
  const gone = connect(server.path);
  const text = JSON.stringify(body);
  const headers = `host: hub\r\ncontent-type: application/json\r\ncontent-length: ${text.length}`;
  gone.write(`POST ${path} HTTP/1.1\r\n${headers}\r\n\r\n${text}`);
  await waitFor(() => expect(administration.restoreAndReloadCalls).toBe(1));
  gone.destroy();
  await once(gone, 'close');
  // When the server answers a later request, it has noticed the disconnect.
  expect((await client.request({ method: 'GET', path: '/v1/status' })).statusCode).toBe(200);
  portal.resolve();
  await waitFor(() => expect(administration.restarts + administration.reloads).toBe(1));
});

test('the control API accepts the backup of a large hub, and refuses an oversized one', async () => {
  const large = await post('/v1/restore', { copy: 'a.sealed.copy'.padEnd(60_000_000), passphrase: PASSPHRASE });
  expect(large.status).toBe(200);
  for (const [path, size] of [
    ['/v1/restore', 70_000_000],
    ['/v1/backup', 70_000],
  ] as const) {
    const socket = connect(server.path);
    const headers = `host: hub\r\ncontent-type: application/json\r\ncontent-length: ${size}`;
    socket.write(`POST ${path} HTTP/1.1\r\n${headers}\r\n\r\n`);
    const [response] = await once(socket, 'data');
    expect(String(response), path).toMatch(/^HTTP\/1\.1 413 /);
    socket.destroy();
  }
});

test.each([
  ['/v1/connections/wallbox/paste', { address: [PASSPHRASE] }],
  ['/v1/backup', { passphrase: 471108154711 }],
  ['/v1/backup', { passphrase: PASSPHRASE, [PASSPHRASE]: 1 }],
  ['/v1/restore', { copy: 7, passphrase: PASSPHRASE }],
  ['/v1/connections/a/import', { refresh_token: 471108154711 }],
  ['/v1/connections/a/import', { refresh_token: PASSPHRASE, [PASSPHRASE]: 1 }],
])('%s rejects %j in one line, without its values', async (path, body) => {
  const { status, content } = await post(path, body);
  expect(status).toBe(400);
  expect(content.message).toMatch(/^[^\n]+$/);
  const all = JSON.stringify(content);
  expect(Object.keys(body).includes(PASSPHRASE) ? '' : all).not.toContain(PASSPHRASE);
  expect(all).not.toContain('471108154711');
  expect(administration).toMatchObject({ passphrases: [], imports: [], restarts: 0 });
  expect(logged.join('')).not.toContain(PASSPHRASE);
});
