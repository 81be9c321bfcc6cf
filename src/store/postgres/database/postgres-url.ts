import { readFile } from 'node:fs/promises';
import { Failure } from '../../../core/failure.ts';
import { Secret } from '../../../core/secret.ts';
import { isLoopbackHost, urlHost } from '../../../system/addresses.ts';
import type { DatabaseAddress } from './connections.ts';

/** The address of a site's database, and how the hub signs in there. */
export interface PostgresUrl extends Omit<DatabaseAddress, 'password' | 'tls'> {
  /** Null if the URL has none. */
  readonly password: Secret | null;
  /** `ca`: the file of the CA to trust, null for the usual ones. Null without TLS, on this machine only. */
  readonly tls: { readonly ca: string | null } | null;
}

const DEFAULT_PORT = 5432;
/** The parameters of a URL that the hub knows. */
const PARAMETERS = ['sslmode', 'sslrootcert', 'host'] as const;
/** Scheme, user and password, host and port, database, parameters. No raw character is allowed that separates parts. */
const URL_PARTS = /^postgres(?:ql)?:\/\/(?:([^@/?#]*)@)?([^@/?#]*)(?:\/([^@/?#]*))?(?:\?([^#?]*))?$/i;
/** A host in brackets or without a colon, and a port. */
const HOST_AND_PORT = /^(\[[^\]]*\]|[^:]*)(?::(\d{0,5}))?$/;

/**
 * Parses a connection URI as PostgreSQL's own tools understand it. TLS with verification of the server's name is
 * required, except on the same machine.
 * @param text such as `postgresql://latchkey:password@db.example/latchkey?sslmode=verify-full`
 * @throws Failure `config_invalid` with a sentence that fits after the name of a key, and never shows the password
 */
export function parsePostgresUrl(text: string): PostgresUrl {
  if (!/^postgres(ql)?:\/\//i.test(text)) throw invalid('the URL must begin with "postgresql://"');
  const [, credentials = '', address = '', path = '', query = ''] = URL_PARTS.exec(text) ?? noMatch();
  const parameters = parseParameters(query);
  const [user, password] = parseCredentials(credentials);
  const { host, port } = parseAddress(address, parameters.get('host'));
  const database = decode(path, 'the name of the database');
  if (database === '')
    throw invalid('the URL must name the database, such as "latchkey" in "postgresql://user@host/latchkey"');
  const tls = chooseTls(host, parameters);
  const description = isSocketDirectory(host)
    ? `database ${database} at the Unix socket ${host}/.s.PGSQL.${port}`
    : `database ${database} on ${urlHost(host)}:${port}`;
  return { host, port, user, password, database, tls, description };
}

function noMatch(): never {
  throw invalid(
    'the URL must have the form "postgresql://user:password@host:port/database?sslmode=verify-full"; in user, password and database write "@" as %40, ":" as %3A, "/" as %2F, "?" as %3F and "#" as %23',
  );
}

function parseParameters(query: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const pair of query.split('&').filter((text) => text !== '')) {
    const [name = '', value = '', ...rest] = pair.split('=').map((part) => decode(part, 'a parameter'));
    // It may be a part of a password with a raw "?".
    if (!/^[a-z_]+$/.test(name)) noMatch();
    if (!PARAMETERS.some((known) => known === name)) {
      throw invalid(
        `the URL has the unknown parameter "${name.slice(0, 40)}"; allowed parameters: ${PARAMETERS.join(', ')}`,
      );
    }
    if (found.has(name) || rest.length > 0 || value === '')
      throw invalid(`the URL must have one value for the parameter "${name}"`);
    found.set(name, value);
  }
  return found;
}

function parseCredentials(text: string): [user: string, password: Secret | null] {
  const [user = '', password, ...rest] = text.split(':');
  if (rest.length > 0) noMatch();
  if (user === '') throw invalid('the URL must name the user, such as "latchkey" in "postgresql://latchkey@host/name"');
  const decoded = password === undefined ? '' : decode(password, 'the password');
  return [decode(user, 'the user'), decoded === '' ? null : new Secret(decoded)];
}

function parseAddress(address: string, parameter: string | undefined): { host: string; port: number } {
  if (address.includes(',')) {
    throw invalid(
      'the URL must name one host (found several): use a name or an address that always leads to the primary server, such as that of a proxy',
    );
  }
  const [, rawHost = '', digits = ''] = HOST_AND_PORT.exec(address) ?? noMatch();
  const port = digits === '' ? DEFAULT_PORT : Number(digits);
  if (port < 1 || port > 65_535) throw invalid('the port in the URL must be a number from 1 to 65535');
  const host = decode(rawHost, 'the host').replace(/^\[|\]$/g, '');
  if (parameter === undefined) {
    if (host === '') throw invalid('the URL must name the host, or the directory of a Unix socket as "?host=/path"');
    return { host, port };
  }
  if (host !== '') throw invalid('the URL must name the host once: before the database, or as the parameter "host"');
  if (!isSocketDirectory(parameter))
    throw invalid('the parameter "host" must be the absolute path of the directory of a Unix socket');
  return { host: parameter, port };
}

/** Null means without TLS, which is allowed only on the same machine. */
function chooseTls(host: string, parameters: ReadonlyMap<string, string>): PostgresUrl['tls'] {
  const mode = parameters.get('sslmode');
  const ca = parameters.get('sslrootcert') ?? null;
  const isSocket = isSocketDirectory(host);
  if (mode === 'verify-full' && !isSocket) return { ca };
  if (!isSocket && !isLoopbackHost(urlHost(host))) {
    const found = mode === undefined ? 'it has no sslmode' : `found ${JSON.stringify(mode.slice(0, 40))}`;
    throw invalid(`the URL must have sslmode=verify-full, because the database is on another machine (${found})`);
  }
  if (isSocket && mode === 'verify-full') throw invalid('a Unix socket has no TLS: leave sslmode out of the URL');
  if (mode !== undefined && mode !== 'disable')
    throw invalid(`sslmode in the URL must be verify-full or disable (found ${JSON.stringify(mode.slice(0, 40))})`);
  if (ca !== null) throw invalid('the parameter "sslrootcert" needs sslmode=verify-full');
  return null;
}

function isSocketDirectory(host: string): boolean {
  return host.startsWith('/');
}

/** @param what names the part in the error, which does not show it */
function decode(part: string, what: string): string {
  try {
    const decoded = decodeURIComponent(part);
    if (!decoded.includes('\0')) return decoded;
  } catch {
    // The error would quote what may be secret.
  }
  throw invalid(`${what} in the URL is encoded incorrectly: write "%" as %25`);
}

function invalid(problem: string): Failure {
  return new Failure('config_invalid', problem);
}

/**
 * How to connect to the database of a URL.
 * @throws Failure `config_invalid` if the file of the CA can't be read
 */
export async function readDatabaseAddress({ password, tls, ...rest }: PostgresUrl): Promise<DatabaseAddress> {
  return {
    ...rest,
    password: password?.reveal(),
    tls: tls && { ca: tls.ca === null ? undefined : await readCaFile(tls.ca) },
  };
}

function readCaFile(path: string): Promise<string> {
  return readFile(path, 'utf8').catch((cause: unknown) => {
    throw new Failure('config_invalid', `the CA of the database in ${path} (sslrootcert) can't be read`, { cause });
  });
}
