import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { Agent, request as plainRequest } from 'node:http';
import { Agent as SecureAgent, request as secureRequest } from 'node:https';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest';
import type { Timers } from '../../src/core/clock.ts';
import { startEmulator } from '../../src/emulator/index.ts';
import { ListeningSocketPool } from '../../src/lan/listening-socket-pool.ts';
import type { LanServer } from '../../src/lan/server.ts';
import { scaleDeadline } from '../support/deadlines.ts';
import { FakeTime } from '../support/fake-time.ts';
import { HubProcess } from '../support/hub-process.ts';
import { LanServerHarness } from '../support/lan-server-harness.ts';
import { waitFor } from '../support/wait-for.ts';
import { AcceptedSockets } from './accepted-sockets.ts';

const SCHEMES = ['http', 'https'] as const;
type Scheme = (typeof SCHEMES)[number];

let sockets: ListeningSocketPool;
let side: LanServerHarness;

beforeEach(async () => {
  sockets = new ListeningSocketPool();
  side = await LanServerHarness.start(['127.0.0.1'], { sockets });
});

afterEach(async () => {
  sockets[Symbol.dispose]();
  await side[Symbol.asyncDispose]();
});

function portOf({ server }: { server: Pick<LanServer, 'httpPort' | 'httpsPort'> }, scheme: Scheme): number {
  return scheme === 'http' ? server.httpPort : server.httpsPort;
}

/** Sends a request, by default on a new connection. Returns the body of `/ca.pem`, or the error's code. */
async function ask(scheme: Scheme, port: number, host = '127.0.0.1', agent: Agent | false = false): Promise<string> {
  const send = scheme === 'http' ? plainRequest : secureRequest;
  const request = send({
    host,
    port,
    path: '/ca.pem',
    agent,
    rejectUnauthorized: false,
    timeout: scaleDeadline(10_000),
  });
  try {
    const [response] = await once(request.end(), 'response');
    return await text(response);
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : String(error);
  }
}

/** A connection that has sent nothing yet; `text` resolves to all that it received. */
async function open(port: number): Promise<{ socket: Socket; text: Promise<string> }> {
  const socket = connect({ host: '127.0.0.1', port });
  await once(socket, 'connect');
  return { socket, text: text(socket).catch(() => 'reset') };
}

/** Ends the LAN server, and starts another in its place after `between`. */
async function replace(
  listen?: readonly string[],
  where: { httpPort?: number; httpsPort?: number; timers?: Timers } = {},
): Promise<void> {
  await side[Symbol.asyncDispose]();
  side = await LanServerHarness.start(listen, { sockets, ...where });
  sockets.closeUnclaimed();
}

describe.for(SCHEMES)('%s while one hub replaces another', (scheme) => {
  it('clients that connect between two hubs wait, and the next hub serves them', async () => {
    const port = portOf(side, scheme);
    const before = side.ca;
    expect(await ask(scheme, port)).toBe(before);
    await side[Symbol.asyncDispose]();
    const pending = Array.from({ length: 20 }, () => ask(scheme, port));
    side = await LanServerHarness.start(['127.0.0.1'], { sockets });
    expect(portOf(side, scheme)).toBe(port);
    expect(side.ca).not.toBe(before);
    expect(await Promise.all(pending)).toEqual(pending.map(() => side.ca));
  });

  it('a client that asks all the time keeps its connection through 20 reloads, and loses no request', async () => {
    using accepted = new AcceptedSockets();
    const agent = new (scheme === 'http' ? Agent : SecureAgent)({ keepAlive: true, maxSockets: 1 });
    const send = () => ask(scheme, portOf(side, scheme), '127.0.0.1', agent);
    const sent = new Set([side.ca]);
    const received = new Set<string>();
    let stopped = false;
    const client = (async () => {
      while (!stopped) received.add(await send());
    })();
    for (let reloads = 0; reloads < 20; reloads++) {
      await replace();
      sent.add(side.ca);
    }
    expect(await send()).toBe(side.ca);
    stopped = true;
    await client;
    agent.destroy();
    expect([...received].filter((response) => !sent.has(response))).toEqual([]);
    expect(accepted.count).toBe(1);
  });
});

it('the next hub answers a request that was half sent, or sent while there was no hub', async () => {
  const socket = connect({ host: '127.0.0.1', port: side.server.httpPort });
  socket.write('GET /ca.pem HTTP/1.1\r\nhost: local');
  await ask('http', side.server.httpPort);
  await side[Symbol.asyncDispose]();
  socket.write('host\r\n\r\nGET /ca.pem HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n');
  side = await LanServerHarness.start(['127.0.0.1'], { sockets });
  expect((await text(socket)).split(side.ca)).toHaveLength(3);
});

it('a device that does not read its response keeps the next hub waiting for 3 seconds, even if it sends another request', async () => {
  using accepted = new AcceptedSockets();
  const time = new FakeTime();
  await replace(['127.0.0.1'], { timers: time });
  // More than the kernel buffers.
  side.home.padding = 'x'.repeat(32 << 20);
  const socket = connect({ host: '127.0.0.1', port: side.server.httpPort }).on('error', () => undefined);
  const request = 'GET /ca.pem HTTP/1.1\r\nhost: localhost\r\n\r\n';
  socket.write(request);
  const hubsEnd = await waitFor(() => accepted.serverSideOf(socket));
  await waitFor(() => expect(hubsEnd.writableLength).toBeGreaterThan(0));
  const ended = side[Symbol.asyncDispose]();
  socket.write(request);
  await waitFor(() => expect(hubsEnd.bytesRead).toBe(2 * request.length));
  time.skip(2999);
  expect(hubsEnd.destroyed).toBe(false);
  time.skip(1);
  expect(hubsEnd.destroyed).toBe(true);
  await ended;
});

describe('a hub that stops', () => {
  it('a stopping hub closes idle connections after a quarter of a second, and silent ones after 3 seconds', async () => {
    using accepted = new AcceptedSockets();
    const time = new FakeTime();
    await replace(['127.0.0.1'], { timers: time });
    const [idle, silent] = [await open(side.server.httpPort), await open(side.server.httpPort)];
    idle.socket.write('GET /ca.pem HTTP/1.1\r\nhost: localhost\r\n\r\n');
    await once(idle.socket, 'data');
    const hubsEnds = [accepted.serverSideOf(idle.socket), accepted.serverSideOf(silent.socket)];
    const isClosed = () => hubsEnds.map(({ destroyed }) => destroyed);
    sockets[Symbol.dispose]();
    const ended = side[Symbol.asyncDispose]();
    time.skip(249);
    expect(isClosed()).toEqual([false, false]);
    time.skip(1);
    expect(isClosed()).toEqual([true, false]);
    time.skip(2749);
    expect(isClosed()).toEqual([true, false]);
    time.skip(1);
    expect(isClosed()).toEqual([true, true]);
    await ended;
  });

  it('a hub that stops for good refuses new connections while it answers a request, whose connection it then closes', async () => {
    const port = side.server.httpPort;
    const { socket, text: response } = await open(port);
    socket.write('GET /ca.pem HTTP/1.1\r\nhost: local');
    await ask('http', port);
    sockets[Symbol.dispose]();
    const ended = side[Symbol.asyncDispose]();
    expect(await ask('http', port)).toBe('ECONNREFUSED');
    socket.write('host\r\n\r\n');
    expect(await response).toMatch(/^HTTP\/1.1 200 .+connection: close\r\n.+-----END CERTIFICATE-----\n$/s);
    await ended;
  });
});

describe('the pool of listening sockets', () => {
  it('the hub opens a socket for a changed port, and the former one closes when the hub is up', async () => {
    const { httpPort, httpsPort } = side.server;
    const other = await LanServerHarness.start();
    const free = other.server.httpPort;
    await other[Symbol.asyncDispose]();
    await side[Symbol.asyncDispose]();
    side = await LanServerHarness.start(['127.0.0.1'], { sockets, httpPort: free, httpsPort });
    expect(side.server.httpPort).toBe(free);
    const pending = ask('http', httpPort);
    expect(await ask('http', free)).toBe(side.ca);
    sockets.closeUnclaimed();
    expect(await pending).toBe('ECONNRESET');
    expect(await ask('http', httpPort)).toBe('ECONNREFUSED');
    expect(await ask('http', free)).toBe(side.ca);
    expect(await ask('https', httpsPort)).toBe(side.ca);
  });

  it('the sockets stay open for the next hub if a hub fails to start', async () => {
    const { httpPort, httpsPort } = side.server;
    const other = await LanServerHarness.start();
    await side[Symbol.asyncDispose]();
    const taken = LanServerHarness.start(['127.0.0.1'], { sockets, httpPort: other.server.httpPort, httpsPort });
    await expect(taken).rejects.toThrow(/^lan\.http_port: port \d+ on 127\.0\.0\.1: another program uses it/);
    const pending = [ask('http', httpPort), ask('https', httpsPort)];
    side = await LanServerHarness.start(['127.0.0.1'], { sockets, httpPort, httpsPort });
    expect(await Promise.all(pending)).toEqual([side.ca, side.ca]);
    await other[Symbol.asyncDispose]();
  });

  it('a socket for all addresses can be replaced by a socket for one address', async () => {
    const { httpPort, httpsPort } = side.server;
    await replace(['0.0.0.0'], { httpPort, httpsPort });
    expect(await ask('http', httpPort, '127.0.0.2')).toBe(side.ca);
    await replace(['127.0.0.3'], { httpPort, httpsPort });
    expect(await ask('http', httpPort, '127.0.0.3')).toBe(side.ca);
    expect(await ask('http', httpPort, '127.0.0.2')).toBe('ECONNREFUSED');
  });

  it('the hub skips an address that the machine does not have if lan.listen names another one', async () => {
    const ports = { http: 0, https: 0 };
    const { http, https } = await sockets.claim({ addresses: ['192.0.2.1', '127.0.0.1'], ports });
    expect([...http.sockets, ...https.sockets].map(({ address }) => address)).toEqual(['127.0.0.1', '127.0.0.1']);
    await expect(sockets.claim({ addresses: ['192.0.2.1'], ports })).rejects.toMatchObject({
      code: 'port_unavailable',
      message: 'lan.listen: 192.0.2.1 is not an address of this machine; use one of its addresses, or remove the key',
    });
  });

  it('up to 1,000 connections wait between two hubs, and further ones are closed', async () => {
    const port = side.server.httpPort;
    await side[Symbol.asyncDispose]();
    const connections: Socket[] = [];
    let closedCount = 0;
    while (connections.length < 1020) {
      // A few at a time: the kernel's accept queue holds no more.
      const some = Array.from({ length: 102 }, () => connect({ host: '127.0.0.1', port }));
      for (const socket of some) socket.on('error', () => undefined).once('close', () => closedCount++);
      await Promise.all(some.map((socket) => once(socket.resume(), 'connect')));
      connections.push(...some);
    }
    await expect.poll(() => closedCount).toBe(20);
    // The next one is closed too, and none of those that wait.
    const late = connect({ host: '127.0.0.1', port }).on('error', () => undefined);
    await once(late.resume(), 'close');
    expect(closedCount).toBe(20);
    for (const socket of connections) socket.destroy();
    side = await LanServerHarness.start(['127.0.0.1'], { sockets });
    await expect.poll(() => ask('http', port)).toBe(side.ca);
  });
});

test('a daemon refuses no connection while it reloads a changed configuration', async () => {
  await using emulator = await startEmulator();
  await using hub = await HubProcess.start({ emulator, here: true });
  const ca = (await hub.authority()).certificate;
  const responses: string[] = [];
  let stopped = false;
  const clients = SCHEMES.map(async (scheme) => {
    while (!stopped && responses.length < 20_000) responses.push(await ask(scheme, portOf({ server: hub }, scheme)));
  });
  const file = join(hub.directory, 'latchkey.toml');
  await writeFile(file, (await readFile(file, 'utf8')).replace('Test hub', 'Renamed hub'));
  await hub.reload();
  expect((await hub.status()).hub.name).toBe('Renamed hub');
  stopped = true;
  await Promise.all(clients);
  expect(responses.length).toBeGreaterThan(20);
  expect(responses.filter((response) => response !== ca)).toEqual([]);
});
