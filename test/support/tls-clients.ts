import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Connects to a port of 127.0.0.1 as `name` and trusts only a PEM file; rejects if the certificate is not trusted. */
export type TlsClient = (port: number, ca: string, name: string) => Promise<void>;

const PYTHON = '/usr/bin/python3';
const STRICT_PYTHON = `
import socket, ssl, sys
port, ca, name = int(sys.argv[1]), sys.argv[2], sys.argv[3]
context = ssl.create_default_context(cafile=ca)
context.verify_flags |= ssl.VERIFY_X509_STRICT
context.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname=name).close()
`;

import { GO_CACHE } from './program.ts';

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
export async function availableTlsClients(folder: string): Promise<ReadonlyMap<string, TlsClient>> {
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
