import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { permittedNames } from '../../../../src/certificates/permitted-names.ts';
import type { Authority, SuccessorAuthority } from '../../../../src/system/x509/certificates.ts';
import { createAuthority, createSuccessorAuthority, issueLeaf } from '../../../../src/system/x509/issuing.ts';
import { stateFolder } from '../../../support/state-folder.ts';
import { availableTlsClients, type TlsClient } from '../../../support/tls-clients.ts';

const NAMES = ['4f2a.local', 'pi', 'pi.fritz.example', 'localhost'];
const ADDRESSES = ['127.0.0.1', '::1', '192.168.1.20', 'fd00::2', 'fe80::1%eth0', '2001:db8::1', '203.0.113.7'];
const PERMITTED = permittedNames(NAMES, ADDRESSES);
const NOW = Date.UTC(2027, 4, 6);
const OPENSSL = '/usr/bin/openssl';

const folder = stateFolder();
const path = (name: string) => join(folder.path, name);
let clients: ReadonlyMap<string, TlsClient>;
let authority: Authority;
let next: SuccessorAuthority;
/** The clients that support name constraints: Mbed TLS does not. */
let constrained: [string, TlsClient][];

beforeAll(async () => {
  clients = await availableTlsClients(folder.path);
  constrained = [...clients].filter(([name]) => name !== 'Mbed TLS');
  authority = await createAuthority('Latchkey hub', PERMITTED);
  next = await createSuccessorAuthority(authority, PERMITTED);
  await writeFile(path('old.pem'), authority.certificate);
  await writeFile(path('new.pem'), next.authority.certificate);
  await writeFile(path('both.pem'), authority.certificate + next.authority.certificate);
});

afterAll(() => folder[Symbol.dispose]());

/** Serves with a certificate. @returns for each client whether it trusts the certificate for `name` */
async function trustByClient(
  leaf: { readonly certificate: string; readonly key: string },
  ca: string,
  name: string,
  tlsClients: Iterable<[string, TlsClient]> = clients,
): Promise<Record<string, boolean>> {
  const server = createServer({ cert: leaf.certificate, key: leaf.key }, (_, response) => response.end('served'));
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as AddressInfo;
  const found: Record<string, boolean> = {};
  for (const [clientName, client] of tlsClients) {
    found[clientName] = await client(port, path(ca), name).then(
      () => true,
      () => false,
    );
  }
  server.closeAllConnections();
  await new Promise((closed) => server.close(closed));
  return found;
}

function forEveryClient(value: boolean, tlsClients: Iterable<[string, TlsClient]> = clients): Record<string, boolean> {
  return Object.fromEntries([...tlsClients].map(([name]) => [name, value]));
}

/** A leaf certificate that an attacker issues with the CA's stolen key. */
async function issueWithStolenKey({ certificate, key }: Authority, names: string) {
  await writeFile(path('stolen-ca.pem'), certificate);
  await writeFile(path('stolen-ca.key'), key);
  await writeFile(path('stolen.cnf'), `subjectAltName = ${names}\nextendedKeyUsage = serverAuth\n`);
  const openssl = (...args: string[]) => execFileSync(OPENSSL, args, { cwd: folder.path, stdio: 'ignore' });
  const ec = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  openssl('req', '-new', ...ec, '-subj', '/CN=thief', '-keyout', 'thief.key', '-out', 'thief.csr');
  const signed = ['-CA', 'stolen-ca.pem', '-CAkey', 'stolen-ca.key', '-days', '9', '-extfile', 'stolen.cnf'];
  openssl('x509', '-req', '-in', 'thief.csr', ...signed, '-out', 'thief.pem');
  const leaf = await readFile(path('thief.pem'), 'utf8');
  return { certificate: leaf + certificate, key: await readFile(path('thief.key'), 'utf8') };
}

describe('CA with name constraints', () => {
  it("every client trusts the hub's CA for all names and addresses of its hub", async () => {
    const leaf = await issueLeaf(authority, { names: NAMES, addresses: ADDRESSES, now: NOW });
    expect(leaf.omitted).toEqual([]);
    for (const name of NAMES) expect(await trustByClient(leaf, 'old.pem', name), name).toEqual(forEveryClient(true));
  });

  it('no client trusts a leaf certificate from a stolen CA key for another name or address', async (ctx) => {
    if (!existsSync(OPENSSL)) return ctx.skip(`${OPENSSL} is missing`);
    for (const names of ['DNS:bank.example', 'DNS:bank.example, DNS:4f2a.local', 'DNS:pi.bank.example']) {
      const [name = ''] = names.replace('DNS:', '').split(',');
      const leaf = await issueWithStolenKey(authority, names);
      expect(await trustByClient(leaf, 'old.pem', name, constrained), names).toEqual(
        forEveryClient(false, constrained),
      );
    }
    const address = await issueWithStolenKey(authority, 'DNS:4f2a.local, IP:198.51.100.1');
    expect(await trustByClient(address, 'old.pem', '4f2a.local', constrained)).toEqual(
      forEveryClient(false, constrained),
    );
    // The clients trust the same leaf of an unconstrained CA, so the constraints make the difference.
    const unconstrained = await createAuthority();
    await writeFile(path('free.pem'), unconstrained.certificate);
    const trusted = await trustByClient(
      await issueWithStolenKey(unconstrained, 'DNS:bank.example'),
      'free.pem',
      'bank.example',
    );
    expect(trusted).toEqual(forEveryClient(true));
    return undefined;
  });

  it("the hub's CA omits names from a leaf certificate that its constraints do not permit", async () => {
    const names = [...NAMES, 'cellar', 'xpi', 'cellar.local'];
    const leaf = await issueLeaf(authority, { names, addresses: [...ADDRESSES, '198.51.100.1'], now: NOW });
    expect(leaf.omitted).toEqual(['cellar', 'xpi', '198.51.100.1']);
    expect(await trustByClient(leaf, 'old.pem', 'cellar.local')).toEqual(forEveryClient(true));
  });
});

describe('CA rotation', () => {
  const crossSignedChain = () => next.crossCertificate + authority.certificate;

  it('clients that trust the old CA, the new one or both trust a leaf certificate with the cross-certificate', async () => {
    const request = { names: NAMES, addresses: ADDRESSES, now: NOW, chain: crossSignedChain() };
    const leaf = await issueLeaf(next.authority, request);
    for (const ca of ['old.pem', 'new.pem', 'both.pem'])
      expect(await trustByClient(leaf, ca, '4f2a.local'), ca).toEqual(forEveryClient(true));
  });

  it("clients of the old CA do not trust the new CA's leaf certificate without the cross-certificate", async () => {
    const leaf = await issueLeaf(next.authority, { names: NAMES, addresses: ADDRESSES, now: NOW });
    expect(await trustByClient(leaf, 'old.pem', '4f2a.local')).toEqual(forEveryClient(false));
    expect(await trustByClient(leaf, 'new.pem', '4f2a.local')).toEqual(forEveryClient(true));
  });

  it('clients that trust only the new CA do not trust a leaf certificate from the stolen old key', async (ctx) => {
    if (!existsSync(OPENSSL)) return ctx.skip(`${OPENSSL} is missing`);
    const leaf = await issueWithStolenKey(authority, 'DNS:4f2a.local');
    const chained = { ...leaf, certificate: leaf.certificate + next.crossCertificate };
    expect(await trustByClient(chained, 'new.pem', '4f2a.local')).toEqual(forEveryClient(false));
    expect(await trustByClient(chained, 'old.pem', '4f2a.local')).toEqual(forEveryClient(true));
    return undefined;
  });

  it('a leaf certificate with a chain to the old CA has only names that both CAs permit', async () => {
    const later = await createSuccessorAuthority(authority, permittedNames([...NAMES, 'cellar'], ADDRESSES));
    const names = [...NAMES, 'cellar'];
    const both = { names, addresses: ADDRESSES, now: NOW, chain: later.crossCertificate + authority.certificate };
    const leaf = await issueLeaf(later.authority, both);
    expect(leaf.omitted).toEqual(['cellar']);
    expect(await trustByClient(leaf, 'old.pem', '4f2a.local')).toEqual(forEveryClient(true));
    expect((await issueLeaf(later.authority, { names, addresses: ADDRESSES, now: NOW })).omitted).toEqual([]);
  });
});
