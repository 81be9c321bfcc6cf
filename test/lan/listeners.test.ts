import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { connect as connectPlain, type Socket } from 'node:net';
import { type ConnectionOptions, connect } from 'node:tls';
import { describe, expect, it } from 'vitest';
import type { CredentialsResponse } from '../../src/control/messages.ts';
import { spkiFingerprint } from '../../src/system/x509/certificates.ts';
import { HubProcess } from '../support/hub-process.ts';
import { startPortal } from '../support/portal.ts';
import { setUpOnce } from '../support/set-up.ts';
import { basicAuthorization, FORM, HubClient } from './hub-client.ts';

let hub: HubProcess;
let client: HubClient;
let id: string;
let fan: CredentialsResponse;

setUpOnce(async (parts) => {
  const emulator = parts.use(await startPortal());
  hub = parts.use(await HubProcess.start({ emulator, here: true }));
  client = parts.use(await HubClient.of(hub));
  id = (await hub.status()).hub.id;
  fan = await hub.addAppliance('fan');
});

async function expectAlive(): Promise<void> {
  expect((await client.http('/ca.pem')).status).toBe(200);
  expect((await client.https('/ca.pem')).status).toBe(200);
}

/** Performs a handshake; returns the protocol, or the error's code. */
function shakeHands(options: ConnectionOptions): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port: hub.httpsPort, ca: client.ca, ...options }, () => {
      resolve(socket.getProtocol() ?? 'none');
      socket.destroy();
    });
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
  });
}

describe('TLS of the hub', () => {
  it('the server certificate is valid for the names and addresses of the hub only', async () => {
    for (const servername of ['localhost', `${id}.local`]) {
      expect(await shakeHands({ servername }), servername).toBe('TLSv1.3');
    }
    expect(await shakeHands({ host: '127.0.0.1' })).toBe('TLSv1.3');
    expect(await shakeHands({ servername: 'portal.example' })).toBe('ERR_TLS_CERT_ALTNAME_INVALID');
  });

  it('the hub shows the same CA and the same CA pin at every place', async () => {
    const ca = (await hub.authority()).certificate;
    for (const response of [await client.http('/ca.pem'), await client.https('/ca.pem')]) {
      expect(response.headers['content-type']).toBe('application/x-pem-file');
      expect(new X509Certificate(response.text).fingerprint256).toBe(new X509Certificate(ca).fingerprint256);
    }
    const fingerprint = (await hub.cli('ca', '--fingerprint')).stdout.trim();
    expect(fingerprint).toBe(spkiFingerprint(ca));
    expect((await hub.status()).hub.ca_fingerprint).toBe(fingerprint);
    expect(fan.ca_fingerprint).toBe(fingerprint);
    expect(fan.token_endpoint).toBe(`https://127.0.0.1:${hub.httpsPort}/oauth/token`);
  });
});

describe('the Host of a request', () => {
  it('the hub accepts an address, localhost and its mDNS name as the Host, with or without port and trailing dot', async () => {
    const names = ['LOCALHOST:1', 'localhost.', `${id}.local`, `${id.toUpperCase()}.LOCAL.:8443`];
    for (const host of ['127.0.0.1', '10.1.2.3:80', '[fd00::1]:8443', ...names]) {
      expect((await client.http('/ca.pem', { headers: { host } })).status, host).toBe(200);
      expect((await client.https('/ca.pem', { headers: { host } })).status, host).toBe(200);
    }
  });

  it.for([
    'rebind.example',
    'localhost.rebind.example',
    '127.0.0.1.nip.io',
    'other.local',
    '2130706433',
    '[rebind.example]',
    'localhost:port',
    'localhost:8480:1',
    '127.0.0.1:65536',
    'user@localhost',
    'localhost,rebind.example',
    '',
  ])('the hub answers 421 to the Host "%s" on both ports and on every path', async (host) => {
    for (const path of ['/', '/ca.pem', '/callback/x?code=y', '/nowhere']) {
      const response = await client.rawHttp(`GET ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
      expect(response, path).toMatch(/^HTTP\/1.1 421 /);
      expect(response).not.toContain('BEGIN CERTIFICATE');
    }
    const body = 'grant_type=client_credentials';
    const overTls = await client.rawHttps(
      `POST /oauth/token HTTP/1.1\r\nhost: ${host}\r\nauthorization: ${basicAuthorization(fan)}\r\ncontent-type: ${FORM}\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
    );
    expect(overTls).toMatch(/^HTTP\/1.1 421 .*: use its address, 127\.0\.0\.1, or the name that it announces/s);
    expect(overTls).not.toContain('invalid_grant');
  });

  it('the hub refuses a request without a Host', async () => {
    expect(await client.rawHttp('GET /ca.pem HTTP/1.1\r\nconnection: close\r\n\r\n')).toMatch(/^HTTP\/1.1 400 /);
    expect(await client.rawHttp('GET /ca.pem HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1.1 421 /);
  });
});

describe('malformed HTTP requests', () => {
  it.for([
    ['noise', '\x16\x03\x01\xff\xfe\x00garbage\r\n\r\n', 400],
    ['a header with a NUL', 'GET / HTTP/1.1\r\nhost: localhost\r\nx: a\0b\r\n\r\n', 400],
    [
      'two lengths',
      'POST /oauth/token HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx',
      400,
    ],
    [
      'a length and chunks',
      'POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n',
      400,
    ],
    ['an address that can not be decoded', 'GET /%zz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n', 400],
    ['headers without end', `GET / HTTP/1.1\r\nhost: localhost\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`, 431],
    ['an address without end', `GET /${'x'.repeat(100_000)} HTTP/1.1\r\nhost: localhost\r\n\r\n`, 431],
  ] as const)('the hub answers an HTTP error to %s and stays available', async ([, bytes, status]) => {
    for (const response of [await client.rawHttp(bytes), await client.rawHttps(bytes)]) {
      expect(response).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
      expect(response).toMatch(/\r\nThe .+\.(\r?\n|$)/);
    }
    await expectAlive();
  });

  it('the hub closes a connection that sends noise or plain HTTP to the HTTPS port', async () => {
    for (const bytes of ['GET / HTTP/1.1\r\nhost: localhost\r\n\r\n', '\0\0\0\0\0\0\0\0']) {
      const socket = connectPlain({ host: '127.0.0.1', port: hub.httpsPort });
      socket.on('error', () => undefined);
      socket.resume().write(bytes, 'latin1');
      await once(socket, 'close');
    }
    await expectAlive();
  });

  it('the hub refuses CONNECT and ignores an upgrade', async () => {
    expect(await client.rawHttp('CONNECT 127.0.0.1:22 HTTP/1.1\r\nhost: localhost\r\n\r\n')).toBe('');
    const upgrade =
      'GET /ca.pem HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade, close\r\nupgrade: websocket\r\n\r\n';
    expect(await client.rawHttp(upgrade, 500)).toMatch(/^HTTP\/1.1 200 /);
    await expectAlive();
  });

  it('the hub disconnects slow clients, and sooner during the headers than during the body', async () => {
    const responses = new Map<string, string>();
    const watch = (name: string, socket: Socket) => {
      let response = '';
      socket
        .on('error', () => undefined)
        .on('data', (chunk) => {
          response += String(chunk);
        });
      return once(socket, 'close').then(() => responses.set(name, response));
    };
    const secure = connect({ host: '127.0.0.1', port: hub.httpsPort, ca: client.ca });
    await once(secure, 'secureConnect');
    const ended = [watch('half a body', secure)];
    secure.write(
      `POST /oauth/token HTTP/1.1\r\nhost: localhost\r\ncontent-type: ${FORM}\r\ncontent-length: 500\r\n\r\ngrant_type=client`,
    );
    const trickle = setInterval(() => secure.write('x'), 300);
    for (const [name, port, bytes] of [
      ['half a request', hub.httpPort, 'GET / HTTP/1.1\r\nhost: loc'],
      ['nothing', hub.httpPort, ''],
      ['no handshake', hub.httpsPort, ''],
    ] as const) {
      const socket = connectPlain({ host: '127.0.0.1', port });
      ended.push(watch(name, socket));
      socket.write(bytes);
    }
    await Promise.all(ended);
    clearInterval(trickle);
    expect(Object.fromEntries(responses)).toEqual({
      'half a request': expect.stringMatching(/^HTTP\/1.1 408 .+took too long\.$/s),
      nothing: expect.stringMatching(/^HTTP\/1.1 408 /),
      'no handshake': '',
      'half a body': expect.stringMatching(/^HTTP\/1.1 408 /),
    });
    expect([...responses.keys()].at(-1)).toBe('half a body');
  });
});

describe('one device with very many connections', () => {
  it('the hub limits the connections of one device, and serves other devices meanwhile', async () => {
    const sockets = Array.from({ length: 400 }, () =>
      connectPlain({ host: '127.0.0.1', port: hub.httpsPort, localAddress: '127.0.0.2' }),
    );
    let dropped = 0;
    for (const socket of sockets) socket.on('error', () => undefined).once('close', () => dropped++);
    await expect.poll(() => dropped).toBe(150);
    await expectAlive();
    // No more than these.
    expect(dropped).toBe(150);
    for (const socket of sockets) socket.destroy();
  });
});

describe('a request that names two hosts', () => {
  it.for([
    ['in two headers', 'GET /ca.pem HTTP/1.1\r\nhost: localhost\r\nhost: evil.example\r\nconnection: close\r\n\r\n'],
    ['in its target', 'GET http://evil.example/ca.pem HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n'],
  ] as const)('the hub refuses a request that names a second host %s', async ([, bytes]) => {
    expect(await client.rawHttp(bytes, 10_000)).toMatch(/^HTTP\/1.1 400 /);
  });
});
