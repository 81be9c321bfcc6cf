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
/** The hub's own address, that of another machine, and one that a router translates to the hub. */
const [OWN, OTHER, TRANSLATED] = ['127.0.0.1', '127.0.0.2', '127.0.0.3'];

let authority: Authority;
let stranger: Authority;
/** Of the hub, of a copy of it at another address, and of a hub that is none. */
let own: Leaf;
let copied: Leaf;
let strange: Leaf;

let open: AsyncDisposableStack;
let accepted: Socket[];

beforeAll(async () => {
  [authority, stranger] = [await createAuthority(), await createAuthority()];
  own = await issueLeaf(authority, { names: NAMES, addresses: [OWN, TRANSLATED], now: NOW });
  copied = await issueLeaf(authority, { names: NAMES, addresses: [OTHER], now: NOW });
  strange = await issueLeaf(stranger, { names: NAMES, addresses: [OTHER], now: NOW });
});
beforeEach(() => {
  open = new AsyncDisposableStack();
  accepted = [];
});
afterEach(() => open.disposeAsync());

it("a server with a certificate for its own address from the hub's CA counts as a copy of the hub", async () => {
  const { check } = begun();
  const port = await serve(copied, OTHER);
  expect(await check(OTHER, port)).toBe(true);
  // There is nothing to wait for.
  expect(await check(OTHER, port)).toBe(true);
});

it('the hub sends no server name when it checks another server', async () => {
  const names: string[] = [];
  const server = createTlsServer({
    cert: copied.certificate,
    key: copied.key,
    SNICallback(name, found) {
      names.push(name);
      found(null);
    },
  });
  expect(await begun().check(OTHER, await listen(server, OTHER))).toBe(true);
  expect(names).toEqual([]);
});

describe('servers that are no copy of the hub', () => {
  it('a server with a certificate of another CA is no copy of the hub', async () => {
    const { check } = begun();
    expect(await check(OTHER, await serve(strange, OTHER))).toBe(false);
  });

  it("a server with a certificate of the hub's CA for another address is no copy of the hub", async () => {
    const { check } = begun();
    const elsewhere = await issueLeaf(authority, { names: NAMES, addresses: [TRANSLATED], now: NOW });
    expect(await check(OTHER, await serve(elsewhere, OTHER))).toBe(false);
  });

  it.each([
    ['its own address', OTHER],
    ['one that the hub’s leaf is for', TRANSLATED],
  ])('a server that forwards the connection at %s to the hub itself is no copy', async (_, address) => {
    const hub = await serve(own, OWN);
    const relay = createServer((from) => {
      const to = connect(hub, OWN);
      from.on('error', () => undefined).pipe(to);
      to.on('error', () => undefined).pipe(from);
    });
    const { check } = begun();
    expect(await check(address, await listen(relay, address))).toBe(false);
  });

  it('an address without a server, or with one that does not speak TLS, is no copy of the hub', async () => {
    const server = createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    const port = await listen(server, OTHER);
    expect(await begun().check(OTHER, port)).toBe(false);
    expect(await begun().check(TRANSLATED, port)).toBe(false);
  });

  it('a server without a response within three seconds is no copy of the hub, and a stop of the hub ends the check', async () => {
    const port = await listen(createServer(), OTHER);
    const { check, time } = begun();
    const waiting = check(OTHER, port);
    await expect.poll(() => accepted.length).toBe(1);
    time.skip(3000);
    expect(await waiting).toBe(false);

    const stopping = new AbortController();
    const stopped = begun().check(OTHER, port, stopping.signal);
    stopping.abort();
    expect(await stopped).toBe(false);
  });
});

it('the hub checks one server at a time, and waits 10 s to 10 min after one that is no copy', async () => {
  const port = await listen(createServer(), OTHER);
  const { check, time } = begun();
  const look = async () => {
    const before = accepted.length;
    const waiting = check(OTHER, port);
    const isLooking = await Promise.race([waiting.then(() => false), seen(before)]);
    if (isLooking) {
      expect(await check(OTHER, port)).toBe(false);
      time.skip(3000);
    }
    expect(await waiting).toBe(false);
    return isLooking;
  };
  for (const seconds of [10, 20, 40, 80, 160, 320, 600, 600]) {
    expect(await look()).toBe(true);
    time.skip(seconds * 1000 - 1);
    expect(await look()).toBe(false);
    time.skip(1);
  }
  expect(accepted).toHaveLength(8);
});

function begun() {
  const time = new FakeTime();
  const { certificate } = authority;
  const copies = new CloneDetector({
    caCertificate: () => certificate,
    ownLeaf: () => own.certificate,
    clock: time,
    timers: time,
  });
  const check = (address: string, port: number, signal = new AbortController().signal) =>
    copies.isClone(address, port, signal);
  return { check, time };
}

async function seen(before: number): Promise<true> {
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
