import { randomBytes } from 'node:crypto';
import { Client, type ClientConfig } from 'pg';
import type { Authority } from '../../../src/system/x509/certificates.ts';
import { createAuthority } from '../../../src/system/x509/issuing.ts';
import { scaleDeadline } from '../deadlines.ts';
import { reservePort } from '../hub-process.ts';
import { logFile, rememberSecrets } from '../logs.ts';
import { type ClusterFiles, createClusterFiles, initializeCluster, type PostgresHost } from './cluster.ts';
import { PostgresProcess, type StopMode } from './process.ts';

/** One statement of a text: quoted parts, and what is outside of them up to the next semicolon. */
const STATEMENT = /(?:\$\$[\s\S]*?\$\$|'(?:[^']|'')*'|[^;'])+/g;

/**
 * Runs statements on a connection of their own, each in its own transaction.
 * @param text the statements, with semicolons between them
 * @returns the rows, one per line, with `|` between the columns
 * @throws Error with the server's message if a statement fails, or if there is no response in time
 */
async function runStatements(database: ClientConfig, text: string): Promise<string> {
  const timeout = scaleDeadline(15_000);
  const client = new Client({ ...database, connectionTimeoutMillis: timeout, query_timeout: timeout });
  // The query that is under way fails as well.
  client.on('error', () => undefined);
  await using _ended = { [Symbol.asyncDispose]: () => client.end() };
  await client.connect();
  const rows: string[] = [];
  for (const [statement] of text.matchAll(STATEMENT)) {
    if (statement.trim() === '') continue;
    const types = { getTypeParser: () => (value: string) => value };
    const result = await client.query<(string | null)[]>({ text: statement, rowMode: 'array', types });
    rows.push(...result.rows.map((row) => row.join('|')));
  }
  return rows.join('\n');
}

export interface PostgresOptions {
  /** Whether connections need TLS, or can't use it. Default: they need it. */
  readonly tls?: boolean;
  /**
   * Whether commits wait for the disk. Otherwise a hub takes a killed server for one that may have lost commits.
   * Default: true.
   */
  readonly fsync?: boolean;
  /** The host that the server runs on. Default: it listens on 127.0.0.1. */
  readonly listenOn?: PostgresHost | undefined;
  /** The port, which a standby has as well, on its own host. Default: any free port. */
  readonly port?: number;
  /** More settings (postgresql.conf). They can't be changed by `ALTER SYSTEM`. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** A database, owned by a role that has no other rights. */
export interface TestDatabase {
  readonly name: string;
  /** The name of the role. */
  readonly user: string;
  readonly password: string;
  /** The `postgresql:` URL of the database on the server that created it, with the role's password. */
  readonly url: string;
}

/** Starts a server with an empty cluster in a temporary folder. It takes a tenth of a second on a quiet machine. */
export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const authority = options.tls === false ? null : await createAuthority('Latchkey test');
  return PostgresServer.launch(options, authority, initializeCluster);
}

/** A PostgreSQL server. Disposal kills it and deletes its files. */
export class PostgresServer implements AsyncDisposable {
  /** The host name or address for clients. */
  readonly host: string;
  readonly port: number;
  readonly options: PostgresOptions;
  /** The CA of the server's certificate; null without TLS. */
  readonly authority: Authority | null;
  readonly #files: ClusterFiles;
  readonly #log: string;
  #process: PostgresProcess | null = null;

  private constructor(options: PostgresOptions, authority: Authority | null, files: ClusterFiles, port: number) {
    this.options = options;
    this.authority = authority;
    this.#files = files;
    this.port = port;
    this.host = options.listenOn?.address ?? 'localhost';
    this.#log = logFile('postgres');
  }

  /** @param prepare creates the data directory */
  static async launch(
    options: PostgresOptions,
    authority: Authority | null,
    prepare: (files: ClusterFiles) => Promise<void>,
  ): Promise<PostgresServer> {
    await using launching = new AsyncDisposableStack();
    const files = launching.use(await createClusterFiles(authority, options.listenOn));
    await prepare(files);
    const server = new PostgresServer(options, authority, files, options.port ?? (await reservePort()));
    await server.start();
    launching.move();
    return server;
  }

  /** The file with the certificate of the CA that issued the server's certificate, PEM. */
  get caFile(): string {
    return this.#files.caFile;
  }

  /** The pids of its processes, the first one first; none if it was never started. */
  get pids(): readonly number[] {
    return this.#process?.pids ?? [];
  }

  /** Starts the server after it was stopped or killed, and waits until it accepts connections. */
  async start(): Promise<void> {
    if (this.#process?.isRunning) throw new Error('PostgreSQL is already running');
    const { listenOn: host } = this.options;
    const { data } = this.#files;
    this.#process = await PostgresProcess.start({ data, settings: this.#settings(), log: this.#log, host });
  }

  /** Stops the server. See {@link PostgresProcess.stop}. */
  async stop(mode: StopMode = 'fast'): Promise<void> {
    await this.#process?.stop(mode);
  }

  /** Stops the server and starts it again. */
  async restart(mode: StopMode = 'fast'): Promise<void> {
    await this.stop(mode);
    await this.start();
  }

  /** Kills all processes of the server (SIGKILL), as an outage of its machine does. */
  async kill(): Promise<void> {
    await this.#process?.kill();
  }

  /** Stops all processes of the server (SIGSTOP): connections stay open, and nothing answers. */
  async pause(): Promise<void> {
    await this.#process?.pause();
  }

  /** Resumes a paused server. */
  async resume(): Promise<void> {
    await this.#process?.resume();
  }

  /** Creates an empty database with its owner. */
  async createDatabase(): Promise<TestDatabase> {
    const name = `site_${randomBytes(4).toString('hex')}`;
    const user = `${name}_owner`;
    const password = randomBytes(18).toString('base64url');
    rememberSecrets([password]);
    await this.sql(
      'postgres',
      `CREATE ROLE ${user} LOGIN PASSWORD '${password}'; CREATE DATABASE ${name} OWNER ${user};`,
    );
    return { name, user, password, url: this.urlOf({ name, user, password }) };
  }

  /** The URL of a database on this server, which is the database's own server or a standby of it. */
  urlOf({ name, user, password }: Omit<TestDatabase, 'url'>): string {
    const url = new URL(`postgresql://${user}:${password}@${this.host}:${this.port}/${name}`);
    if (this.authority === null) url.searchParams.set('sslmode', 'disable');
    else {
      url.searchParams.set('sslmode', 'verify-full');
      url.searchParams.set('sslrootcert', this.caFile);
    }
    return url.href;
  }

  /**
   * Runs statements as superuser, each in its own transaction, through the server's Unix socket.
   * @param database its name
   * @returns the rows, as {@link runStatements} does
   * @throws Error with the server's message if a statement fails
   */
  sql(database: TestDatabase | string, statements: string): Promise<string> {
    const name = typeof database === 'string' ? database : database.name;
    return runStatements({ host: this.#files.folder, port: this.port, user: 'postgres', database: name }, statements);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await this.#files[Symbol.asyncDispose]();
  }

  #settings(): Readonly<Record<string, string>> {
    const { folder } = this.#files;
    return {
      listen_addresses: this.options.listenOn?.address ?? '127.0.0.1',
      port: String(this.port),
      unix_socket_directories: folder,
      unix_socket_permissions: '0700',
      hba_file: `${folder}/pg_hba.conf`,
      ...(this.authority !== null && {
        ssl: 'on',
        ssl_cert_file: `${folder}/server.pem`,
        ssl_key_file: `${folder}/server.key`,
      }),
      fsync: this.options.fsync === false ? 'off' : 'on',
      // A killed server leaves POSIX shared memory behind; this is removed with its folder.
      dynamic_shared_memory_type: 'mmap',
      log_line_prefix: '%m %d ',
      ...this.options.settings,
    };
  }
}
