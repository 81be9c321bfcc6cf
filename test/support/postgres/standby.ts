import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { eventually } from '../hub-process.ts';
import { rememberSecrets } from '../logs.ts';
import { type PostgresHost, postgresProgram, runAsPostgres, writePrivateFile } from './cluster.ts';
import { PostgresServer } from './server.ts';

export interface StandbyOptions {
  /**
   * Whether each commit on the primary waits until the standby has flushed it. If the primary has several such
   * standbys, commits wait for all of them. Default: false.
   */
  readonly synchronous?: boolean;
  /** The host that the standby runs on. Default: it listens on 127.0.0.1. */
  readonly listenOn?: PostgresHost;
}

/**
 * Copies a running server, which becomes the primary, and replicates it from then on. The primary's CA issues the
 * standby's certificate.
 */
export async function addStandby(primary: PostgresServer, options: StandbyOptions = {}): Promise<PostgresStandby> {
  const { synchronous = false, listenOn } = options;
  const name = `standby_${randomBytes(4).toString('hex')}`;
  const password = randomBytes(18).toString('base64url');
  rememberSecrets([password]);
  await primary.sql('postgres', `CREATE ROLE ${name} LOGIN REPLICATION PASSWORD '${password}';`);
  const serverOptions = {
    ...primary.options,
    listenOn,
    // It tries again soon after it lost the connection.
    settings: { ...primary.options.settings, wal_retrieve_retry_interval: '100ms' },
  };
  await using adding = new AsyncDisposableStack();
  const server = await PostgresServer.launch(serverOptions, primary.authority, async ({ folder, data, caFile }) => {
    // The server logs its settings when they change: they contain no password.
    const passwordFile = join(folder, 'standby.pgpass');
    await writePrivateFile(passwordFile, `*:*:*:*:${password}\n`);
    const tls = primary.authority === null ? 'sslmode=disable' : `sslmode=verify-full sslrootcert=${caFile}`;
    const from = `host=${primary.host} port=${primary.port}`;
    const connection = `${from} user=${name} application_name=${name} passfile=${passwordFile} ${tls}`;
    // The primary keeps in this slot what the standby has not received.
    const slot = ['--slot', name, '--create-slot'];
    const copy = [postgresProgram('pg_basebackup'), '--pgdata', data, '--dbname', connection];
    await runAsPostgres([...copy, ...slot, '--write-recovery-conf', '--checkpoint=fast', '--no-sync'], listenOn);
  });
  adding.use(server);
  if (synchronous) await waitForInCommits(primary, name);
  const state = `SELECT sync_state FROM pg_stat_replication WHERE application_name = '${name}' AND state = 'streaming';`;
  await eventually(async () => (await primary.sql('postgres', state)) === (synchronous ? 'sync' : 'async'));
  adding.move();
  return new PostgresStandby(server);
}

/**
 * A server that replicates another one by streaming; it answers queries, but accepts no writes until it is promoted.
 */
export class PostgresStandby implements AsyncDisposable {
  readonly server: PostgresServer;

  constructor(server: PostgresServer) {
    this.server = server;
  }

  /** Waits until the standby has replayed all that the primary has committed. */
  async catchUp(primary: PostgresServer): Promise<void> {
    const written = await primary.sql('postgres', 'SELECT pg_current_wal_lsn();');
    const hasReplayed = `SELECT pg_last_wal_replay_lsn() >= '${written}';`;
    await eventually(async () => (await this.server.sql('postgres', hasReplayed)) === 't');
  }

  /**
   * Disconnects the standby from the primary. What the primary commits from then on is lost if it ends and the standby
   * is promoted. Commits wait if the standby is synchronous.
   */
  async pauseReplication(): Promise<void> {
    await this.server.sql('postgres', "ALTER SYSTEM SET primary_conninfo = ''; SELECT pg_reload_conf();");
    const receivers = "SELECT count(*) FROM pg_stat_wal_receiver WHERE status = 'streaming';";
    await eventually(async () => (await this.server.sql('postgres', receivers)) === '0');
  }

  /** Makes the standby a primary, with what it has received. Its commits wait for no standby. */
  async promote(): Promise<void> {
    await this.server.sql(
      'postgres',
      'ALTER SYSTEM RESET synchronous_standby_names; SELECT pg_reload_conf(); SELECT pg_promote();',
    );
    await eventually(async () => (await this.server.sql('postgres', 'SELECT pg_is_in_recovery();')) === 'f');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server[Symbol.asyncDispose]();
  }
}

/** Lets the commits of a server wait for one more standby. */
async function waitForInCommits(primary: PostgresServer, name: string): Promise<void> {
  const before = await primary.sql('postgres', 'SHOW synchronous_standby_names;');
  const names = [...(before.match(/standby_\w+/g) ?? []), name];
  await primary.sql(
    'postgres',
    `ALTER SYSTEM SET synchronous_standby_names = 'FIRST ${names.length} (${names})'; SELECT pg_reload_conf();`,
  );
}
