import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { connect as connectTls } from 'node:tls';
import { Agent, request } from 'undici';
import { expect } from 'vitest';
import type { Emulator } from '../../../src/emulator/index.ts';
import {
  FakeClock,
  get,
  obtainTokens,
  refreshTokens,
  requestEmulatorApi,
  startTestEmulator,
  test,
  whoami,
} from '../portal-client.ts';

/** What the client received until the connection ended, and how it ended. */
interface Wire {
  readonly text: string;
  readonly end: 'closed' | 'reset';
  /** Milliseconds from the request to the end. */
  readonly took: number;
}

async function read(socket: Socket, bytes: string): Promise<Wire> {
  const startedAt = performance.now();
  let text = '';
  let end: Wire['end'] = 'closed';
  socket.setEncoding('latin1');
  socket.on('data', (chunk) => {
    text += chunk;
  });
  socket.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'ECONNRESET') end = 'reset';
  });
  socket.write(bytes, 'latin1');
  await once(socket, 'close').catch(() => undefined);
  return { text, end, took: performance.now() - startedAt };
}

/** Requests whoami without a token, on its own connection and without an HTTP client. */
function wire(emulator: Emulator): Promise<Wire> {
  const { hostname, port } = new URL(emulator.baseUrl);
  return read(
    connect(Number(port), hostname),
    'GET /api/whoami HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n',
  );
}

const UNFAULTED_BODY = '{"error":"unauthorized"}';
const WHOAMI = { endpoint: 'whoami' } as const;

test('a status fault answers with any status, headers and body, and the request has no effect', async ({
  emulator,
}) => {
  const { refresh_token } = await obtainTokens(emulator);
  emulator.addFault({
    endpoint: 'token',
    kind: 'status',
    status: 503,
    headers: { 'Retry-After': '7', Date: 'never', 'content-type': 'text/html' },
    body: '<h1>Maintenance</h1>',
  });
  const response = await refreshTokens(emulator, refresh_token);
  expect([response.status, await response.text()]).toEqual([503, '<h1>Maintenance</h1>']);
  expect(['retry-after', 'date', 'content-type'].map((name) => response.headers.get(name))).toEqual([
    '7',
    'never',
    'text/html',
  ]);
  expect(emulator.grants()[0]?.generation).toBe(1);
  expect((await refreshTokens(emulator, refresh_token)).status).toBe(200);
});

test('a status fault with commit rotates the tokens and answers with its status instead', async () => {
  await using emulator = await startTestEmulator();
  const { refresh_token } = await obtainTokens(emulator);
  emulator.addFault({ endpoint: 'token', kind: 'status', status: 502, commit: true });
  const response = await refreshTokens(emulator, refresh_token);
  expect([response.status, await response.text()]).toEqual([502, '']);
  expect(emulator.grants()[0]?.generation).toBe(2);
  expect(emulator.requests.at(-1)).toMatchObject({ status: 502, fault: '1' });
});

test('a delay fault answers late, whether the request takes effect before or after the delay', async ({ emulator }) => {
  for (const commit of [false, true]) {
    const { refresh_token } = await obtainTokens(emulator);
    emulator.addFault({ endpoint: 'token', kind: 'delay', seconds: 0.3, commit });
    const startedAt = performance.now();
    const response = refreshTokens(emulator, refresh_token);
    await expect.poll(() => emulator.faults.at(-1)?.hits).toBe(1);
    expect(emulator.grants().at(-1)?.generation).toBe(commit ? 2 : 1);
    expect((await response).status).toBe(200);
    expect(performance.now() - startedAt).toBeGreaterThan(290);
  }
});

test('a hang fault sends no response and keeps the connection open until the emulator closes', async () => {
  const emulator = await startTestEmulator();
  const { refresh_token } = await obtainTokens(emulator);
  emulator.addFault({ ...WHOAMI, kind: 'hang' });
  emulator.addFault({ endpoint: 'token', kind: 'hang', commit: true });
  let ended = false;
  const held = wire(emulator).finally(() => {
    ended = true;
  });
  await expect.poll(() => emulator.faults[0]?.hits).toBe(1);
  const lost = refreshTokens(emulator, refresh_token).catch((error: Error) => error.message);
  await expect.poll(() => emulator.grants()[0]?.generation).toBe(2);
  // The emulator keeps serving other requests meanwhile.
  expect((await wire(emulator)).text).toContain(UNFAULTED_BODY);
  expect(ended).toBe(false);
  await emulator.close();
  expect((await held).text).toBe('');
  expect(await lost).toBe('fetch failed');
});

test.for([
  ['reset_before', 'nothing was done', 1],
  ['commit_then_drop', 'everything was done', 2],
] as const)('a %s fault resets the connection, and %s', async ([kind, , generation]) => {
  await using emulator = await startTestEmulator();
  const { refresh_token } = await obtainTokens(emulator);
  emulator.addFault({ ...WHOAMI, kind });
  expect(await wire(emulator)).toMatchObject({ text: '', end: 'reset' });
  emulator.addFault({ endpoint: 'token', kind });
  await expect(refreshTokens(emulator, refresh_token)).rejects.toThrow();
  expect(emulator.grants()[0]?.generation).toBe(generation);
  expect(emulator.requests.at(-1)).toMatchObject({ status: null, fault: '2' });
});

test('a truncate fault sends the full content length and a part of the body, and closes the connection', async ({
  emulator,
}) => {
  for (const bytes of [0, 5]) {
    emulator.addFault({ ...WHOAMI, kind: 'truncate', bytes });
    const { text, end } = await wire(emulator);
    expect(text).toContain(`content-length: ${UNFAULTED_BODY.length}\r\n`);
    expect([text.split('\r\n\r\n')[1], end]).toEqual([UNFAULTED_BODY.slice(0, bytes), 'closed']);
    expect(emulator.requests.at(-1)?.status).toBe(null);
  }
});

test('a slow_body fault sends the whole response at the given bytes per second', async ({ emulator }) => {
  emulator.addFault({ ...WHOAMI, kind: 'slow_body', bytesPerSecond: 60 });
  const { text, took } = await wire(emulator);
  expect(text.split('\r\n\r\n')[1]).toBe(UNFAULTED_BODY);
  expect(took).toBeGreaterThan(300);
  expect(emulator.requests.at(-1)?.status).toBe(401);
});

test('not_json, content_type, redirect and wrong_date faults change only what they name', async () => {
  await using emulator = await startTestEmulator({ clock: new FakeClock() });
  const fetchWhoami = async () => {
    const response = await get(`${emulator.baseUrl}/api/whoami`);
    const [type, where, date] = ['content-type', 'location', 'date'].map((name) => response.headers.get(name));
    return { status: response.status, type, where, date, text: await response.text() };
  };
  const unfaulted = await fetchWhoami();
  expect(unfaulted).toMatchObject({
    status: 401,
    where: null,
    date: 'Mon, 05 May 2031 06:07:08 GMT',
    text: UNFAULTED_BODY,
  });
  emulator.addFault({ ...WHOAMI, kind: 'not_json' });
  const notJson = await fetchWhoami();
  expect(notJson).toMatchObject({ status: 200, type: 'application/json', date: unfaulted.date });
  expect(() => JSON.parse(notJson.text) as unknown).toThrow(SyntaxError);
  emulator.addFault({ ...WHOAMI, kind: 'content_type', contentType: 'text/plain' });
  expect(await fetchWhoami()).toEqual({ ...unfaulted, type: 'text/plain' });
  for (const status of [301, 302, 307, 308] as const) {
    emulator.addFault({ ...WHOAMI, kind: 'redirect', location: 'http://elsewhere.example/', status });
    expect(await fetchWhoami()).toMatchObject({ status, where: 'http://elsewhere.example/', text: '' });
  }
  emulator.addFault({ ...WHOAMI, kind: 'wrong_date', offset: -7200 });
  expect(await fetchWhoami()).toEqual({ ...unfaulted, date: 'Mon, 05 May 2031 04:07:08 GMT' });
  expect(await fetchWhoami()).toEqual(unfaulted);
});

test('a change_members fault replaces members of a JSON response by a text, and leaves other responses alone', async ({
  emulator,
}) => {
  const { refresh_token } = await obtainTokens(emulator);
  emulator.addFault({ endpoint: '*', kind: 'change_members', members: '{"expires_in": -1e400, "x":[[]]}', times: 2 });
  const response = await refreshTokens(emulator, refresh_token);
  const text = await response.text();
  expect(text).toMatch(/^\{"access_token":.*,"expires_in": -1e400, "x":\[\[\]\]}$/);
  // Parsers differ in which one of two members with one name they take.
  expect(text.match(/"expires_in"/g)).toHaveLength(1);
  expect(JSON.parse(text)).toMatchObject({ token_type: 'bearer', expires_in: -Infinity });
  const page = await get(`${emulator.frontendUrl}/sso/authorize`);
  expect([page.status, await page.text()]).toEqual([400, expect.stringMatching(/<\/html>\s*$/)]);
});

test('a change_members fault leaves the other members of a response as they are', async ({ emulator }) => {
  const metadata = async () => (await get(`${emulator.frontendUrl}/.well-known/openid-configuration`)).json();
  const unfaulted = await metadata();
  emulator.addFault({ endpoint: 'discovery', kind: 'change_members', members: ' {"a,b":"}","issuer":"x\\""} ' });
  expect(await metadata()).toEqual({ ...unfaulted, 'a,b': '}', issuer: 'x"' });
});

test('an oversize fault sends the right response in the given number of bytes', async ({ emulator }) => {
  const { refresh_token } = await obtainTokens(emulator);
  emulator.addFault({ endpoint: 'token', kind: 'oversize', bytes: 2_000_000 });
  const response = await refreshTokens(emulator, refresh_token);
  const body = await response.text();
  expect([body.length, response.headers.get('content-length')]).toEqual([2_000_000, '2000000']);
  expect(JSON.parse(body)).toMatchObject({ token_type: 'bearer' });
  expect(emulator.requests.at(-1)?.status).toBe(200);
});

test('an origin_down fault refuses connections until it is removed, and then the same port is open again', async () => {
  await using emulator = await startTestEmulator();
  const { access_token, refresh_token } = await obtainTokens(emulator);
  const { id, left } = emulator.addFault({ kind: 'origin_down', origin: 'frontend' });
  expect(left).toBe(1);
  const refused = async () => {
    await expect(refreshTokens(emulator, refresh_token)).rejects.toThrow();
    return refreshTokens(emulator, refresh_token).catch((error: Error) => error.cause);
  };
  expect(await refused()).toMatchObject({ code: 'ECONNREFUSED' });
  expect((await whoami(emulator, access_token)).status).toBe(200);
  expect(() => emulator.addFault({ kind: 'origin_down', origin: 'frontend' })).toThrow(/^origin: is already down/);
  expect(await emulator.removeFault(id)).toBe(true);
  expect((await refreshTokens(emulator, refresh_token)).status).toBe(200);
  expect(await emulator.removeFault(id)).toBe(false);
});

test('an origin_down fault of the base origin ends after the given seconds', async () => {
  await using emulator = await startTestEmulator();
  const post = (fault: object) =>
    requestEmulatorApi(emulator, 'POST', 'faults', { kind: 'origin_down', origin: 'base', ...fault });
  const endless = await post({});
  expect([endless.status, ((await endless.json()) as { message: string }).message]).toEqual([
    400,
    expect.stringMatching(/^seconds: must be a number above 0/),
  ]);
  const down = await post({ seconds: 0.3 });
  expect([down.status, await down.json()]).toEqual([201, expect.objectContaining({ id: '1', hits: 1, left: 1 })]);
  await expect(get(emulator.baseUrl)).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } });
  await expect.poll(() => get(emulator.baseUrl).then(({ status }) => status, String)).toBe(200);
  expect(emulator.faults).toMatchObject([{ hits: 1, left: 0 }]);
});

/** Whether this machine has ::1. */
const IPV6 = networkInterfaces()['lo']?.some(({ address }) => address === '::1') === true;

test.skipIf(!IPV6)('faults of an emulator on localhost affect both loopback addresses', async () => {
  await using emulator = await startTestEmulator({ host: 'localhost' });
  const { port } = new URL(emulator.baseUrl);
  const outcomes = () =>
    Promise.all(
      ['127.0.0.1', '[::1]'].map((host) =>
        get(`http://${host}:${port}/api/whoami`).then(
          ({ status }) => status,
          (error: Error) => (error.cause as NodeJS.ErrnoException).code,
        ),
      ),
    );
  expect(await outcomes()).toEqual([401, 401]);
  emulator.addFault({ ...WHOAMI, kind: 'reset_before', times: 2 });
  expect(await outcomes()).toEqual(['ECONNRESET', 'ECONNRESET']);
  const { id } = emulator.addFault({ kind: 'origin_down', origin: 'base' });
  expect(await outcomes()).toEqual(['ECONNREFUSED', 'ECONNREFUSED']);
  await emulator.removeFault(id);
  expect(await outcomes()).toEqual([401, 401]);
});

test('an origin whose port another program has taken comes up again when that program ends', async ({ emulator }) => {
  const { id } = emulator.addFault({ kind: 'origin_down', origin: 'base' });
  const { hostname, port } = new URL(emulator.baseUrl);
  const portHolder = createServer((socket) => socket.destroy()).listen(Number(port), hostname);
  await once(portHolder, 'listening');
  await emulator.removeFault(id);
  await expect(get(emulator.baseUrl)).rejects.toThrow();
  portHolder.close();
  await expect.poll(() => get(emulator.baseUrl).then(({ status }) => status, String)).toBe(200);
});

test('over TLS the emulator resets connections, takes origins down and fails handshakes', async () => {
  await using emulator = await startTestEmulator({ tls: true });
  const { port } = new URL(emulator.baseUrl);
  const ca = emulator.ca ?? '';
  const agent = new Agent({ connect: { ca }, pipelining: 0 });
  await using _ = { [Symbol.asyncDispose]: () => agent.destroy() };
  const ask = () =>
    request(`${emulator.baseUrl}/api/whoami`, { dispatcher: agent }).then(({ statusCode }) => statusCode);
  for (const kind of ['reset_before', 'commit_then_drop'] as const) {
    emulator.addFault({ ...WHOAMI, kind });
    await expect(ask()).rejects.toMatchObject({ code: 'ECONNRESET' });
  }
  const cut = connectTls({ port: Number(port), ca, servername: 'localhost', checkServerIdentity: () => undefined });
  await once(cut, 'secureConnect');
  emulator.addFault({ ...WHOAMI, kind: 'truncate', bytes: 3 });
  const { text } = await read(cut, 'GET /api/whoami HTTP/1.1\r\nHost: localhost\r\n\r\n');
  expect(text.split('\r\n\r\n')[1]).toBe(UNFAULTED_BODY.slice(0, 3));

  emulator.addFault({ kind: 'tls_failure', origin: 'base' });
  await expect(ask()).rejects.toMatchObject({ code: 'ERR_SSL_WRONG_VERSION_NUMBER' });
  emulator.addFault({ kind: 'tls_failure', origin: 'base', answer: 'close', times: 2 });
  await expect(ask()).rejects.toThrow();
  expect(await read(connect(Number(port), '127.0.0.1'), 'x')).toMatchObject({ text: '' });
  expect(emulator.faults.at(-1)).toMatchObject({ hits: 2, left: 0 });
  expect(await ask()).toBe(401);

  const { id } = emulator.addFault({ kind: 'origin_down', origin: 'base' });
  await expect(ask()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  await emulator.removeFault(id);
  expect(await ask()).toBe(401);
});
