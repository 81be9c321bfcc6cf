import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HUB_NAME, LanServerHarness } from '../support/lan-server-harness.ts';

const VERSIONS = ['TLSv1.2', 'TLSv1.3'] as const;

let side: LanServerHarness;

beforeEach(async () => {
  side = await LanServerHarness.start(['127.0.0.1', '127.0.0.2']);
});

afterEach(() => side[Symbol.asyncDispose]());

async function open(options: ConnectionOptions = {}): Promise<TLSSocket> {
  const socket = connect({ host: '127.0.0.1', port: side.server.httpsPort, ca: side.ca, ...options });
  await once(socket, 'secureConnect');
  return socket;
}

/** Sends a request on a connection that stays open, and returns the status. */
async function status(socket: TLSSocket, host = 'localhost'): Promise<number> {
  socket.write(`GET /ca.pem HTTP/1.1\r\nhost: ${host}\r\n\r\n`);
  let text = '';
  while (!text.includes('\r\n\r\n') || (text.includes(' 200 ') && !text.includes('-----END')))
    [text] = [text + String((await once(socket, 'data'))[0])];
  return Number(/^HTTP\/1.1 (\d{3}) /.exec(text)?.[1]);
}

/** Sends a request, because servers send their tickets with the first response, and closes the connection. */
async function session(options: ConnectionOptions): Promise<Buffer> {
  const socket = await open(options);
  let latest: Buffer | undefined = socket.getSession();
  socket.on('session', (ticket: Buffer) => {
    latest = ticket;
  });
  await status(socket);
  await sleep(20);
  socket.destroy();
  if (latest === undefined) throw new Error('the server gave no session');
  return latest;
}

async function isReused(options: ConnectionOptions): Promise<boolean> {
  const socket = await open(options);
  const reused = socket.isSessionReused();
  expect(await status(socket)).toBe(200);
  socket.destroy();
  return reused;
}

async function serial(options: ConnectionOptions = {}): Promise<string> {
  const socket = await open(options);
  const { raw } = socket.getPeerCertificate();
  socket.destroy();
  return new X509Certificate(raw).serialNumber;
}

describe.for(VERSIONS)('TLS sessions over %s', (version) => {
  const options: ConnectionOptions = { minVersion: version, maxVersion: version };

  it('a device can resume its TLS session', async () => {
    const firstSession = await session(options);
    expect(await isReused(options)).toBe(false);
    expect(await isReused({ ...options, session: firstSession })).toBe(true);
  });

  it('a device can not resume its TLS session after the server certificate was set again', async () => {
    const leaf = await side.renewLeaf();
    const firstSession = await session(options);
    side.server.renewLeaf(leaf);
    expect(await isReused({ ...options, session: firstSession })).toBe(false);
    expect(await isReused({ ...options, session: await session(options) })).toBe(true);
  });
});

describe('a new server certificate', () => {
  it('new connections get a new server certificate, and open connections stay open', async () => {
    const standing = await open();
    expect(await status(standing)).toBe(200);
    const before = await serial();
    const { certificate } = await side.renewLeaf();
    expect(await serial()).toBe(new X509Certificate(certificate).serialNumber);
    expect(await serial({ host: '127.0.0.2' })).not.toBe(before);
    expect(await status(standing)).toBe(200);
    expect(standing.closed).toBe(false);
    standing.destroy();
  });

  it('a server certificate with another key is rejected and the old one stays in use', async () => {
    const before = await serial();
    const other = await LanServerHarness.start();
    const { key } = await other.renewLeaf();
    await other[Symbol.asyncDispose]();
    expect(() => side.server.renewLeaf({ certificate: side.ca, key })).toThrow(/key values mismatch/);
    expect(await serial()).toBe(before);
  });

  it('the hub refuses old TLS versions also with a new server certificate', async () => {
    await side.renewLeaf();
    const old = { maxVersion: 'TLSv1.1', minVersion: 'TLSv1', ciphers: 'DEFAULT:@SECLEVEL=0' } as const;
    await expect(open(old)).rejects.toThrow(/protocol version/);
  });
});

describe('the server name (SNI) of a TLS handshake', () => {
  it.for([
    ['localhost', 200],
    [HUB_NAME.toUpperCase(), 200],
    ['', 200],
    ['10.0.0.7', 200],
    ['rebind.example', 421],
    ['localhost.example', 421],
  ] as const)('the hub answers the server name "%s" with %i, whichever valid Host the request names', async (row) => {
    const [servername, expected] = row;
    const socket = await open({ servername, checkServerIdentity: () => undefined });
    expect(await status(socket)).toBe(expected);
    expect(await status(socket, '127.0.0.1')).toBe(expected);
    socket.destroy();
  });
});

describe('TLS 1.2 ciphers', () => {
  const options = { maxVersion: 'TLSv1.2', minVersion: 'TLSv1.2' } as const;

  it('the hub accepts only authenticated ciphers with forward secrecy over TLS 1.2', async () => {
    for (const ciphers of ['ECDHE-ECDSA-CHACHA20-POLY1305', 'ECDHE-ECDSA-AES128-CCM']) {
      const socket = await open({ ...options, ciphers });
      expect(socket.getCipher().name).toBe(ciphers);
      socket.destroy();
    }
    for (const ciphers of ['ECDHE-ECDSA-AES128-SHA256', 'AES128-GCM-SHA256']) {
      await expect(open({ ...options, ciphers })).rejects.toThrow(/handshake failure/);
    }
  });

  it('the hub refuses TLS renegotiation', async () => {
    const socket = await open(options);
    socket.on('error', () => undefined);
    const outcome = await new Promise<Error | null>((resolve) => {
      socket.once('close', () => resolve(new Error('closed')));
      socket.renegotiate({}, (error) => resolve(error));
    });
    expect(outcome).toBeInstanceOf(Error);
    socket.destroy();
  });
});
