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

  it('the hub refuses old TLS versions and weak ciphers also with a new server certificate', async () => {
    await side.renewLeaf();
    const old = { maxVersion: 'TLSv1.1', minVersion: 'TLSv1', ciphers: 'DEFAULT:@SECLEVEL=0' } as const;
    await expect(open(old)).rejects.toThrow(/protocol version/);
    await expect(open({ maxVersion: 'TLSv1.2', ciphers: 'ECDHE-ECDSA-AES128-SHA' })).rejects.toThrow(
      /handshake failure/,
    );
  });
});

describe('the server name (SNI) of a TLS handshake', () => {
  it.for(['localhost', HUB_NAME, HUB_NAME.toUpperCase()])('the hub accepts the server name %s', async (servername) => {
    const socket = await open({ servername, checkServerIdentity: () => undefined });
    expect(await status(socket)).toBe(200);
    socket.destroy();
  });

  it.for(['rebind.example', 'localhost.example', 'other.local', '*'])(
    'the hub answers 421 to the server name %s, even if the Host is valid',
    async (servername) => {
      const socket = await open({ servername, checkServerIdentity: () => undefined });
      expect(await status(socket)).toBe(421);
      expect(await status(socket, '127.0.0.1')).toBe(421);
      socket.destroy();
    },
  );

  it('the hub accepts a handshake without a server name or with an IP address as the name', async () => {
    for (const servername of ['', '10.0.0.7']) {
      const socket = await open({ servername, checkServerIdentity: () => undefined });
      expect(await status(socket, '127.0.0.1')).toBe(200);
      socket.destroy();
    }
  });
});

describe('TLS 1.2 ciphers', () => {
  const options = { maxVersion: 'TLSv1.2', minVersion: 'TLSv1.2' } as const;

  it.for([
    'ECDHE-ECDSA-AES128-GCM-SHA256',
    'ECDHE-ECDSA-AES256-GCM-SHA384',
    'ECDHE-ECDSA-CHACHA20-POLY1305',
    'ECDHE-ECDSA-AES128-CCM',
  ])('the hub accepts %s over TLS 1.2', async (ciphers) => {
    const socket = await open({ ...options, ciphers });
    expect(socket.getCipher().name).toBe(ciphers);
    socket.destroy();
  });

  it.for(['ECDHE-ECDSA-AES128-SHA256', 'ECDHE-ECDSA-AES256-SHA', 'AES128-GCM-SHA256', 'DHE-RSA-AES128-GCM-SHA256'])(
    'the hub refuses %s over TLS 1.2',
    async (ciphers) => {
      await expect(open({ ...options, ciphers })).rejects.toThrow(/handshake failure/);
    },
  );

  it('the hub chooses the TLS 1.2 cipher among those that a device offers', async () => {
    const socket = await open({ ...options, ciphers: 'ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES128-GCM-SHA256' });
    expect(socket.getCipher().name).toBe('ECDHE-ECDSA-AES128-GCM-SHA256');
    socket.destroy();
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
