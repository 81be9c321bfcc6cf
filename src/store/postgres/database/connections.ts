import { once } from 'node:events';
import { Socket } from 'node:net';
import { Client, type ClientConfig, Pool, types } from 'pg';
import type { Timers } from '../../../core/clock.ts';
import { withTimeout } from '../../../system/clock.ts';

/** How to connect to the database of a site. */
export interface DatabaseAddress {
  /** A host name or an IP address without brackets, or the absolute path of the directory of a Unix socket. */
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string | undefined;
  readonly database: string;
  /** Null only for loopback and Unix sockets. */
  readonly tls: { readonly ca: string | undefined } | null;
  /** For people, without the password, such as `database home on db.example:5432`. */
  readonly description: string;
}

/** The schema with all tables. */
export const SCHEMA = 'latchkey';
/** How many connections a hub uses at once for reads and writes, besides its heartbeats and the one that listens. */
export const MAX_CONNECTIONS = 4;
/** How long a connection may take, and a statement, in ms. The server ends a statement before the hub gives it up. */
const CONNECT_TIMEOUT = 5000;
const STATEMENT_TIMEOUT = 5000;
const RESPONSE_TIMEOUT = 6000;

/** Settings of every session. The server notices within half a minute that a hub was cut off, and frees its locks. */
const SESSION_SETTINGS = {
  search_path: SCHEMA,
  statement_timeout: STATEMENT_TIMEOUT,
  lock_timeout: STATEMENT_TIMEOUT - 1000,
  idle_in_transaction_session_timeout: 10_000,
  tcp_keepalives_idle: 10,
  tcp_keepalives_interval: 5,
  tcp_keepalives_count: 3,
  // Keep-alives stop while something that was sent is not acknowledged.
  tcp_user_timeout: 25_000,
  default_transaction_isolation: 'read\\ committed',
};

/** Whole numbers of 64 bits as numbers: none of the tables has any beyond 2 ** 53. */
const TYPES: ClientConfig['types'] = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    oid === types.builtins.INT8 ? Number : types.getTypeParser(oid, format)) as typeof types.getTypeParser,
};

interface ConnectionOptions {
  /** Get the socket of the connection. */
  readonly sockets?: DatabaseSockets;
  /** In ms. */
  readonly connectTimeout?: number;
}

function configuration(
  { host, port, user, password, database, tls }: DatabaseAddress,
  name: string,
  { sockets, connectTimeout = CONNECT_TIMEOUT }: ConnectionOptions,
): ClientConfig {
  return {
    ...(sockets && { stream: sockets.create }),
    host,
    port,
    user,
    password,
    database,
    ssl: tls === null ? false : { rejectUnauthorized: true, ...(tls.ca !== undefined && { ca: tls.ca }) },
    application_name: name,
    connectionTimeoutMillis: connectTimeout,
    query_timeout: RESPONSE_TIMEOUT,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    options: Object.entries(SESSION_SETTINGS)
      .map(([name, value]) => `-c ${name}=${value}`)
      .join(' '),
    types: TYPES,
  };
}

/**
 * The connections for reads and writes, and for heartbeats. An error of an idle one is ignored: the next use opens
 * another.
 */
export function openPool(address: DatabaseAddress, hubId: string, sockets: DatabaseSockets): Pool {
  const options = { max: MAX_CONNECTIONS + 1, idleTimeoutMillis: 60_000 };
  const pool = new Pool({ ...configuration(address, hubId, { sockets }), ...options });
  pool.on('error', () => undefined);
  // One that breaks while it is in use reports that beside the failure of its query.
  pool.on('connect', (client) => client.on('error', () => undefined));
  return pool;
}

/**
 * One connection that is not shared, not yet connected.
 * @param name how the server calls it, such as the hub's id
 */
export function newClient(address: DatabaseAddress, name: string, options: ConnectionOptions): Client {
  return new Client(configuration(address, name, options));
}

/** How long the end of connections is waited for, in ms: a server that hangs does not answer. */
const CLOSE_TIME = 1000;

/** The sockets of connections to the database. One whose server hangs would keep the hub's process alive. */
export class DatabaseSockets {
  readonly #open = new Set<Socket>();

  /** The option `stream` of `pg`. */
  readonly create = (): Socket => {
    const socket = new Socket();
    this.#open.add(socket);
    socket.once('close', () => this.#open.delete(socket));
    return socket;
  };

  /** Waits until all sockets are closed, and destroys those that are not closed in time. */
  async close(timers: Timers): Promise<void> {
    await withTimeout(Promise.allSettled([...this.#open].map((socket) => once(socket, 'close'))), CLOSE_TIME, timers);
    for (const socket of this.#open) socket.destroy();
  }
}
