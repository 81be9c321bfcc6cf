import { execFile } from 'node:child_process';
import { createHash, X509Certificate } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Authority, type Leaf, spkiFingerprint } from '../../../src/system/x509/certificates.ts';
import { createAuthority, issueLeaf } from '../../../src/system/x509/issuing.ts';

const run = promisify(execFile);

const NAMES = ['4f2a.local', 'localhost'];
const ADDRESSES = ['127.0.0.1', '192.168.1.20', '::1', 'fd00::2:1', 'fe80::1%eth0'];
const TODAY = Date.UTC(2027, 4, 6, 7, 8, 9);

const PYTHON = '/usr/bin/python3';
const STRICT_PYTHON = `
import socket, ssl, sys
port, ca, name = int(sys.argv[1]), sys.argv[2], sys.argv[3]
context = ssl.create_default_context(cafile=ca)
context.verify_flags |= ssl.VERIFY_X509_STRICT
with context.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname=name) as connection:
    print(connection.version())
`;
let authority: Authority;
let leaf: Leaf;
let other: Authority;

beforeAll(async () => {
  authority = await createAuthority();
  other = await createAuthority();
  leaf = await issueLeaf(authority, { names: NAMES, addresses: ADDRESSES, now: TODAY });
});

describe('certificate authority', () => {
  it("the CA's certificate is valid from 2000 to 9999 and self-signed", () => {
    const certificate = new X509Certificate(authority.certificate);
    expect(certificate.validFromDate.toISOString()).toBe('2000-01-01T00:00:00.000Z');
    expect(certificate.validToDate.toISOString()).toBe('9999-12-31T23:59:59.000Z');
    expect(certificate.ca).toBe(true);
    expect(certificate.verify(certificate.publicKey)).toBe(true);
  });

  it('each CA has its own key, serial number and name', () => {
    const [one, two] = [new X509Certificate(authority.certificate), new X509Certificate(other.certificate)];
    expect(one.serialNumber).not.toBe(two.serialNumber);
    expect(one.subject).not.toBe(two.subject);
    expect(spkiFingerprint(authority.certificate)).not.toBe(spkiFingerprint(other.certificate));
  });
});

describe('leaf certificate', () => {
  it('a leaf certificate has the requested names and addresses without zones, signed by the CA', () => {
    const certificate = new X509Certificate(leaf.certificate);
    const issuer = new X509Certificate(authority.certificate);
    expect(certificate.checkIssued(issuer)).toBe(true);
    expect(certificate.verify(issuer.publicKey)).toBe(true);
    expect(certificate.verify(new X509Certificate(other.certificate).publicKey)).toBe(false);
    for (const name of NAMES) expect(certificate.checkHost(name)).toBe(name);
    for (const address of ['127.0.0.1', '192.168.1.20', '::1', 'fd00::2:1', 'fe80::1']) {
      expect(certificate.checkIP(address)).toBe(address);
    }
    expect(certificate.checkIP('192.168.1.21')).toBeUndefined();
  });

  it('a leaf certificate is valid from 2000 until ten years after it was issued', () => {
    const certificate = new X509Certificate(leaf.certificate);
    expect(certificate.validFromDate.toISOString()).toBe('2000-01-01T00:00:00.000Z');
    expect(certificate.validToDate.toISOString()).toBe('2037-05-06T07:08:09.000Z');
    expect(leaf.notAfter).toBe(certificate.validToDate.getTime());
  });

  it.each([
    ['a clock in 1970 gives one that lives today', 0, '2036-01-01T00:00:00.000Z'],
    ['a clock in the year 9995 gives one that the authority outlives', Date.UTC(9995, 0), '9999-12-31T23:59:59.000Z'],
  ])('a leaf certificate of a wrong clock is valid today and not longer than its CA: %s', async (_, now, end) => {
    const { certificate, notAfter } = await issueLeaf(authority, { names: NAMES, addresses: [], now });
    expect(new X509Certificate(certificate).validToDate.toISOString()).toBe(end);
    expect(new Date(notAfter).toISOString()).toBe(end);
  });

  it('issuing a leaf certificate for an invalid address fails', async () => {
    await expect(issueLeaf(authority, { names: [], addresses: ['eth0'], now: TODAY })).rejects.toThrow();
  });
});

describe('CA pin', () => {
  it('the CA pin is the base64url SHA-256 of the public key', () => {
    const key = new X509Certificate(authority.certificate).publicKey.export({ type: 'spki', format: 'der' });
    expect(spkiFingerprint(authority.certificate)).toBe(createHash('sha256').update(key).digest('base64url'));
  });

  it('the CA pin matches the second certificate of the served chain and not the leaf', () => {
    const [, ca] = leaf.certificate.split(/(?<=-----END CERTIFICATE-----\n)/);
    expect(spkiFingerprint(ca ?? '')).toBe(spkiFingerprint(authority.certificate));
    expect(spkiFingerprint(leaf.certificate)).not.toBe(spkiFingerprint(authority.certificate));
  });
});

describe('TLS clients that trust the CA', () => {
  let directory: string;
  let ca: string;
  let wrongCa: string;
  let port: number;
  const server = createServer((_, response) => response.end('served'));

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'latchkey-certificates-'));
    ca = join(directory, 'ca.pem');
    wrongCa = join(directory, 'wrong-ca.pem');
    await writeFile(ca, authority.certificate);
    await writeFile(wrongCa, other.certificate);
    server.setSecureContext({ cert: leaf.certificate, key: leaf.key });
    await new Promise<void>((listening) => server.listen(0, '::', listening));
    port = portOf(server.address());
  });

  afterAll(async () => {
    await new Promise((closed) => server.close(closed));
    await rm(directory, { recursive: true });
  });

  it('undici trusts the leaf certificate only with the right CA', async () => {
    const fetchAt = async (trusted: string) => {
      const dispatcher = new Agent({ connect: { ca: trusted } });
      try {
        return await (await request(`https://127.0.0.1:${port}/`, { dispatcher })).body.text();
      } finally {
        await dispatcher.close();
      }
    };
    expect(await fetchAt(authority.certificate)).toBe('served');
    await expect(fetchAt(other.certificate)).rejects.toThrow(/certificate|signature/);
  });

  it('strict Python verification trusts the leaf certificate only with the right CA and name', async (ctx) => {
    if (!existsSync(PYTHON)) return ctx.skip(`${PYTHON} is missing`);
    const python = async (trusted: string, name: string) =>
      (await run(PYTHON, ['-c', STRICT_PYTHON, String(port), trusted, name])).stdout.trim();
    expect(await python(ca, '4f2a.local')).toBe('TLSv1.3');
    expect(await python(ca, 'fd00::2:1')).toBe('TLSv1.3');
    await expect(python(ca, 'other.local')).rejects.toThrow(/Hostname mismatch/);
    await expect(python(wrongCa, '4f2a.local')).rejects.toThrow(/CERTIFICATE_VERIFY_FAILED/);
    return undefined;
  });
});

function portOf(address: string | AddressInfo | null): number {
  if (address === null || typeof address === 'string') throw new Error('the server does not listen');
  return address.port;
}
