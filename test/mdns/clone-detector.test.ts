import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { CloneDetector } from '../../src/mdns/conflicts/clone-detector.ts';
import type { Authority, Leaf } from '../../src/system/x509/certificates.ts';
import { createAuthority, issueLeaf } from '../../src/system/x509/issuing.ts';
import { scaleDeadline } from '../support/deadlines.ts';
import { FakeTime } from '../support/fake-time.ts';

const NOW = Date.UTC(2027, 4, 6);
const NAMES = ['latchkey-1.local'];
/** The hub's own address, the address of another machine, and one that a router translates to the hub. */
const [OWN, OTHER, TRANSLATED] = ['127.0.0.1', '127.0.0.2', '127.0.0.3'];

let authority: Authority;
let otherAuthority: Authority;
/** The server certificates of the hub, of a clone at another address, and of an unrelated hub. */
let ownLeaf: Leaf;
let cloneLeaf: Leaf;
let otherLeaf: Leaf;

let open: AsyncDisposableStack;
let accepted: Socket[];

beforeAll(async () => {
  [authority, otherAuthority] = [await createAuthority(), await createAuthority()];
  ownLeaf = await issueLeaf(authority, { names: NAMES, addresses: [OWN, TRANSLATED], now: NOW });
  cloneLeaf = await issueLeaf(authority, { names: NAMES, addresses: [OTHER], now: NOW });
  otherLeaf = await issueLeaf(otherAuthority, { names: NAMES, addresses: [OTHER], now: NOW });
});
beforeEach(() => {
  open = new AsyncDisposableStack();
  accepted = [];
});
afterEach(() => open.disposeAsync());

it("a server with a certificate for its own address from the hub's CA counts as a copy of the hub", async () => {
  const { check } = createDetector();
  const port = await serve(cloneLeaf, OTHER);
  expect(await check(OTHER, port)).toBe(true);
  // There is nothing to wait for.
  expect(await check(OTHER, port)).toBe(true);
});

describe('servers that are no copy of the hub', () => {
  it('a server with a certificate of another CA is no copy of the hub', async () => {
    const { check } = createDetector();
    expect(await check(OTHER, await serve(otherLeaf, OTHER))).toBe(false);
  });

  it("a server with a certificate of the hub's CA for another address is no copy of the hub", async () => {
    const { check } = createDetector();
    const elsewhere = await issueLeaf(authority, { names: NAMES, addresses: [TRANSLATED], now: NOW });
    expect(await check(OTHER, await serve(elsewhere, OTHER))).toBe(false);
  });

  it.each([
    ['its own address', OTHER],
    ['one that the hub’s leaf is for', TRANSLATED],
  ])('a server that forwards the connection at %s to the hub itself is no copy', async (_, address) => {
    const hub = await serve(ownLeaf, OWN);
    const relay = createServer((from) => {
      const to = connect(hub, OWN);
      from.on('error', () => undefined).pipe(to);
      to.on('error', () => undefined).pipe(from);
    });
    const { check } = createDetector();
    expect(await check(address, await listen(relay, address))).toBe(false);
  });

  it('an address without a server, or with one that does not speak TLS, is no copy of the hub', async () => {
    const server = createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    const port = await listen(server, OTHER);
    expect(await createDetector().check(OTHER, port)).toBe(false);
    expect(await createDetector().check(TRANSLATED, port)).toBe(false);
  });

  it('a server without a response within three seconds is no copy of the hub, and a stop of the hub ends the check', async () => {
    const port = await listen(createServer(), OTHER);
    const { check, time } = createDetector();
    const result = check(OTHER, port);
    await expect.poll(() => accepted.length).toBe(1);
    time.skip(3000);
    expect(await result).toBe(false);

    const stopping = new AbortController();
    const stopped = createDetector().check(OTHER, port, stopping.signal);
    stopping.abort();
    expect(await stopped).toBe(false);
  });
});

it('the hub checks one server at a time, and waits 10 s to 10 min after one that is no copy', async () => {
  const port = await listen(createServer(), OTHER);
  const { check, time } = createDetector();
  const look = async () => {
    const before = accepted.length;
    const result = check(OTHER, port);
    const isConnecting = await Promise.race([result.then(() => false), nextConnection(before)]);
    if (isConnecting) {
      expect(await check(OTHER, port)).toBe(false);
      time.skip(3000);
    }
    expect(await result).toBe(false);
    return isConnecting;
  };
  for (const seconds of [10, 20, 40, 80, 160, 320, 600, 600]) {
    expect(await look()).toBe(true);
    time.skip(seconds * 1000 - 1);
    expect(await look()).toBe(false);
    time.skip(1);
  }
  expect(accepted).toHaveLength(8);
});

function createDetector() {
  const time = new FakeTime();
  const { certificate } = authority;
  const detector = new CloneDetector({
    caCertificate: () => certificate,
    ownLeaf: () => ownLeaf.certificate,
    clock: time,
    timers: time,
  });
  const check = (address: string, port: number, signal = new AbortController().signal) =>
    detector.isClone(address, port, signal);
  return { check, time };
}

async function nextConnection(before: number): Promise<true> {
  await expect.poll(() => accepted.length, { timeout: scaleDeadline(10_000) }).toBeGreaterThan(before);
  return true;
}

function serve({ certificate, key }: Leaf, address: string): Promise<number> {
  return listen(createTlsServer({ cert: certificate, key }), address);
}

/** @returns the port */
async function listen(server: Server, address: string): Promise<number> {
  server.on('connection', (socket) => {
    accepted.push(socket);
    socket.on('error', () => undefined);
  });
  server.on('tlsClientError', () => undefined);
  await once(server.listen(0, address), 'listening');
  open.defer(async () => {
    for (const socket of accepted) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return (server.address() as AddressInfo).port;
}
