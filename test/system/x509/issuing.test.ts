import { createHash, X509Certificate } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Authority, type Leaf, spkiFingerprint } from '../../../src/system/x509/certificates.ts';
import { createAuthority, createSuccessorAuthority, issueLeaf } from '../../../src/system/x509/issuing.ts';

const NAMES = ['4f2a.local', 'localhost'];
const ADDRESSES = ['127.0.0.1', '192.168.1.20', '::1', 'fd00::2:1', 'fe80::1%eth0'];
const TODAY = Date.UTC(2027, 4, 6, 7, 8, 9);
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

describe('cross certificate', () => {
  it('a cross certificate limits names but no addresses, and the leaf below it keeps both limits of the CAs', async () => {
    const permitted = { names: ['local'], networks: ['192.168.0.0/16'] };
    const old = await createAuthority('Latchkey hub', permitted);
    const next = await createSuccessorAuthority(old, permitted);
    const der = (pem: string) => new X509Certificate(pem).raw.toString('hex');
    const [name, network] = ['82056c6f63616c', '8708c0a80000ffff0000'];
    expect(der(next.authority.certificate)).toContain(`${name}300a${network}`);
    expect(der(next.crossCertificate)).toContain(name);
    expect(der(next.crossCertificate)).not.toContain(network);
    const issued = await issueLeaf(next.authority, {
      names: NAMES,
      addresses: ['192.168.1.20', '198.51.100.1'],
      now: TODAY,
      chain: next.crossCertificate + old.certificate,
    });
    expect(issued.omitted).toEqual(['localhost', '198.51.100.1']);
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
});

describe('CA pin', () => {
  it('the CA pin is the base64url SHA-256 of the public key', () => {
    const key = new X509Certificate(authority.certificate).publicKey.export({ type: 'spki', format: 'der' });
    expect(spkiFingerprint(authority.certificate)).toBe(createHash('sha256').update(key).digest('base64url'));
  });
});
