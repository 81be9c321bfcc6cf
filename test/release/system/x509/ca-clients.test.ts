import { execFile, execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { permittedNames } from '../../../../src/certificates/permitted-names.ts';
import type { Authority, SuccessorAuthority } from '../../../../src/system/x509/certificates.ts';
import { createAuthority, createSuccessorAuthority, issueLeaf } from '../../../../src/system/x509/issuing.ts';
import { GO_CACHE } from '../../../support/program.ts';
import { stateFolder } from '../../../support/state-folder.ts';

const run = promisify(execFile);

/** Connects to a port of 127.0.0.1 as `name` and trusts only a PEM file; rejects if the certificate is not trusted. */
type TlsClient = (port: number, ca: string, name: string) => Promise<void>;

const PYTHON = '/usr/bin/python3';
const STRICT_PYTHON = `
import socket, ssl, sys
port, ca, name = int(sys.argv[1]), sys.argv[2], sys.argv[3]
context = ssl.create_default_context(cafile=ca)
context.verify_flags |= ssl.VERIFY_X509_STRICT
context.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname=name).close()
`;

const GO = `package main

import (
	"crypto/tls"
	"crypto/x509"
	"log"
	"os"
)

func main() {
	pem, err := os.ReadFile(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	if _, err := tls.Dial("tcp", "127.0.0.1:"+os.Args[1], &tls.Config{RootCAs: pool, ServerName: os.Args[3]}); err != nil {
		log.Fatal(err)
	}
}
`;
const GNUTLS = `#include <arpa/inet.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>
#include <sys/socket.h>

int main(int count, char **args) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  gnutls_certificate_credentials_t trusted;
  gnutls_session_t session;
  int result, wire = socket(AF_INET, SOCK_STREAM, 0);
  if (count < 4) return 2;
  to.sin_port = htons(atoi(args[1]));
  if (connect(wire, (struct sockaddr *)&to, sizeof to) != 0) return 3;
  gnutls_certificate_allocate_credentials(&trusted);
  gnutls_certificate_set_x509_trust_file(trusted, args[2], GNUTLS_X509_FMT_PEM);
  gnutls_init(&session, GNUTLS_CLIENT);
  gnutls_set_default_priority(session);
  gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, trusted);
  gnutls_session_set_verify_cert(session, args[3], 0);
  gnutls_transport_set_int(session, wire);
  do result = gnutls_handshake(session);
  while (result < 0 && !gnutls_error_is_fatal(result));
  return result < 0;
}
`;
const MBEDTLS = `#include <mbedtls/ctr_drbg.h>
#include <mbedtls/entropy.h>
#include <mbedtls/net_sockets.h>
#include <mbedtls/ssl.h>

int main(int count, char **args) {
  mbedtls_net_context net;
  mbedtls_ssl_context tls;
  mbedtls_ssl_config config;
  mbedtls_x509_crt ca;
  mbedtls_entropy_context entropy;
  mbedtls_ctr_drbg_context bits;
  if (count < 4) return 2;
  mbedtls_net_init(&net);
  mbedtls_ssl_init(&tls);
  mbedtls_ssl_config_init(&config);
  mbedtls_x509_crt_init(&ca);
  mbedtls_entropy_init(&entropy);
  mbedtls_ctr_drbg_init(&bits);
  if (mbedtls_ctr_drbg_seed(&bits, mbedtls_entropy_func, &entropy, NULL, 0) != 0) return 3;
  if (mbedtls_x509_crt_parse_file(&ca, args[2]) != 0) return 4;
  mbedtls_ssl_config_defaults(&config, MBEDTLS_SSL_IS_CLIENT, MBEDTLS_SSL_TRANSPORT_STREAM, MBEDTLS_SSL_PRESET_DEFAULT);
  mbedtls_ssl_conf_rng(&config, mbedtls_ctr_drbg_random, &bits);
  mbedtls_ssl_conf_authmode(&config, MBEDTLS_SSL_VERIFY_REQUIRED);
  mbedtls_ssl_conf_ca_chain(&config, &ca, NULL);
  if (mbedtls_ssl_setup(&tls, &config) != 0 || mbedtls_ssl_set_hostname(&tls, args[3]) != 0) return 5;
  if (mbedtls_net_connect(&net, "127.0.0.1", args[1], MBEDTLS_NET_PROTO_TCP) != 0) return 6;
  mbedtls_ssl_set_bio(&tls, &net, mbedtls_net_send, mbedtls_net_recv, NULL);
  return mbedtls_ssl_handshake(&tls) != 0;
}
`;

/**
 * The clients that can run on this machine, by name. Compiled ones are kept in a folder.
 * @param folder an empty one
 */
async function availableTlsClients(folder: string): Promise<ReadonlyMap<string, TlsClient>> {
  const clients = new Map<string, TlsClient>();
  clients.set('Node', async (port, ca, servername) => {
    const socket = connect({ host: '127.0.0.1', port, ca: readFileSync(ca), servername });
    await new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject));
    socket.destroy();
  });
  const program = (file: string, args: readonly string[] = []): TlsClient => {
    return async (port, ca, name) => void (await run(file, [...args, String(port), ca, name]));
  };
  if (existsSync('/usr/bin/curl')) {
    clients.set('curl', async (port, ca, name) => {
      const options = ['-sSo', '/dev/null', '--noproxy', '*', '--resolve', `${name}:${port}:127.0.0.1`];
      await run('/usr/bin/curl', [...options, '--cacert', ca, `https://${name}:${port}/`]);
    });
  }
  if (existsSync('/usr/bin/openssl')) {
    const strict = ['s_client', '-x509_strict', '-verify_return_error', '-brief'];
    clients.set('openssl s_client', async (port, ca, name) => {
      const child = run('/usr/bin/openssl', [
        ...[...strict, '-connect', `127.0.0.1:${port}`, '-CAfile', ca, '-servername', name, '-verify_hostname', name],
      ]);
      child.child.stdin?.end();
      await child;
    });
  }
  if (existsSync(PYTHON)) clients.set('strict Python', program(PYTHON, ['-c', STRICT_PYTHON]));
  if (existsSync('/usr/bin/go')) {
    const env = { ...process.env, GO111MODULE: 'off', GOCACHE: GO_CACHE };
    await writeFile(join(folder, 'client.go'), GO);
    await run('/usr/bin/go', ['build', '-o', 'go-client', 'client.go'], { cwd: folder, env });
    clients.set('Go', program(join(folder, 'go-client')));
  }
  const compiled = async (name: string, header: string, source: string, libraries: readonly string[]) => {
    if (!existsSync('/usr/bin/cc') || !existsSync(`/usr/include/${header}`)) return;
    const out = join(folder, `${name}-client`);
    await writeFile(`${out}.c`, source);
    await run('/usr/bin/cc', ['-o', out, `${out}.c`, ...libraries.map((library) => `-l${library}`)]);
    clients.set(name, program(out));
  };
  await compiled('GnuTLS', 'gnutls/gnutls.h', GNUTLS, ['gnutls']);
  await compiled('Mbed TLS', 'mbedtls/ssl.h', MBEDTLS, ['mbedtls', 'mbedx509', 'mbedcrypto']);
  return clients;
}

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
