import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { chmod, chown, mkdir, mkdtemp, mkdtempDisposable, rename, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Authority } from '../../../src/system/x509/certificates.ts';
import { issueLeaf } from '../../../src/system/x509/issuing.ts';
import { scaleDeadline } from '../deadlines.ts';
import { rememberSecrets } from '../logs.ts';
import type { Host } from '../netns.ts';
import { SHARED_CACHE } from '../program.ts';
import { memoryFolder } from '../state-folder.ts';

const run = promisify(execFile);

/** Bytes for the clusters of all tests that run at once. On a disk, each commit would wait for it. */
const ROOM_FOR_CLUSTERS = 2 ** 30;
/** Where Debian has the programs of each major version of PostgreSQL. */
const VERSIONS = '/usr/lib/postgresql';

/** The path of a program of the newest version of PostgreSQL. */
export function postgresProgram(name: 'initdb' | 'pg_basebackup' | 'postgres'): string {
  const versions = existsSync(VERSIONS) ? readdirSync(VERSIONS).map(Number).filter(Number.isInteger) : [];
  return join(VERSIONS, String(Math.max(0, ...versions)), 'bin', name);
}

/** Why PostgreSQL can't be started here; null if it can. */
export function postgresSkipReason(): string | null {
  if (process.getuid?.() !== 0) return 'the tests run PostgreSQL as another user and in namespaces, which needs root';
  const missing = [postgresProgram('postgres'), '/usr/bin/setpriv', '/usr/bin/unshare'].find(
    (file) => !existsSync(file),
  );
  return missing === undefined ? null : `${missing} is missing`;
}

/** The environment of PostgreSQL's programs: no settings of the user who runs the tests. */
export const POSTGRES_ENV: NodeJS.ProcessEnv = { PATH: process.env['PATH'], HOME: '/nonexistent' };

/** The arguments of setpriv(1) for PostgreSQL's own user: the server refuses to run as root. */
export const AS_POSTGRES = ['--reuid=postgres', '--regid=postgres', '--clear-groups'];

/** The host that a server runs on: its network namespace and its address there. */
export type PostgresHost = Pick<Host, 'namespace' | 'address'>;

/** The prefix of a command that runs on a host. Without a host it is empty. */
export function onHost(host: PostgresHost | undefined): readonly string[] {
  return host === undefined ? [] : ['ip', 'netns', 'exec', host.namespace];
}

/**
 * Runs a program as PostgreSQL's user to its end, on a host if one is given.
 * @throws Error with its output if it fails
 */
export async function runAsPostgres(command: readonly string[], host?: PostgresHost): Promise<void> {
  const [program = '', ...args] = [...onHost(host), 'setpriv', ...AS_POSTGRES, ...command];
  await run(program, args, {
    // pg_basebackup and initdb can't work in the directory of a user who keeps it private.
    cwd: '/',
    env: POSTGRES_ENV,
    timeout: scaleDeadline(60_000),
    killSignal: 'SIGKILL',
  });
}

/** The files of a server. */
export interface ClusterFiles extends AsyncDisposable {
  /** The folder, which belongs to PostgreSQL's user; the server's Unix socket is here as well. */
  readonly folder: string;
  /** The data directory; it does not exist yet. */
  readonly data: string;
  /** The certificate of the CA that issued the server's certificate, PEM. */
  readonly caFile: string;
}

/**
 * Creates the files around a data directory.
 * @param authority the CA of the server's certificate; null for a server without TLS
 */
export async function createClusterFiles(authority: Authority | null, host?: PostgresHost): Promise<ClusterFiles> {
  await using creating = new AsyncDisposableStack();
  const folder = await mkdtemp(join(memoryFolder(ROOM_FOR_CLUSTERS) ?? tmpdir(), 'latchkey-postgres-'));
  // rm(1) takes a quarter of the time that Node takes for a thousand files.
  creating.defer(async () => void (await run('rm', ['--recursive', '--force', folder])));
  const caFile = join(folder, 'ca.pem');
  // Connections over TCP need a password, and TLS if the server has it. Only root and the server's own user can open
  // the Unix socket.
  const connection = authority === null ? 'host' : 'hostssl';
  await writeFile(
    join(folder, 'pg_hba.conf'),
    `local all all trust\n${connection} all all all scram-sha-256\n${connection} replication all all scram-sha-256\n`,
  );
  if (authority !== null) {
    const leaf = await issueLeaf(authority, {
      names: ['localhost'],
      addresses: ['127.0.0.1', ...(host === undefined ? [] : [host.address])],
      now: Date.now(),
    });
    rememberSecrets(leaf.key.split('\n').slice(1, -2));
    await writeFile(caFile, authority.certificate);
    await writeFile(join(folder, 'server.pem'), leaf.certificate);
    await writePrivateFile(join(folder, 'server.key'), leaf.key);
  }
  const { uid, gid } = await postgresUser();
  await chown(folder, uid, gid);
  // Hubs that run as another user read the CA's certificate.
  await chmod(folder, 0o711);
  const resources = creating.move();
  return { folder, data: join(folder, 'data'), caFile, [Symbol.asyncDispose]: () => resources.disposeAsync() };
}

/** Writes a file that only PostgreSQL's user and root can read. */
export async function writePrivateFile(file: string, content: string): Promise<void> {
  const { uid, gid } = await postgresUser();
  await writeFile(file, content, { mode: 0o600 });
  await chown(file, uid, gid);
}

/** Options of initdb(1). Small segments of the log make a cluster that is copied in no time. */
const CLUSTER_OPTIONS = [
  ...['--username=postgres', '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync', '--wal-segsize=1'],
];

let template: Promise<string> | null = null;

/** Creates a new database cluster in the data directory: a copy of one that is kept, so all have one system identifier. */
export async function initializeCluster({ data }: ClusterFiles): Promise<void> {
  template ??= clusterTemplate();
  await run('cp', ['--archive', await template, data]);
}

/** An empty cluster, which is created by the first test of the checkout that needs it. @returns its folder */
async function clusterTemplate(): Promise<string> {
  const initdb = postgresProgram('initdb');
  const { mtimeMs } = await stat(initdb);
  const key = createHash('sha256').update([initdb, mtimeMs, ...CLUSTER_OPTIONS].join('\n'));
  const kept = join(SHARED_CACHE, `postgres-${key.digest('hex').slice(0, 16)}`);
  if (existsSync(kept)) return kept;
  await using files = await createClusterFiles(null);
  await runAsPostgres([initdb, '--pgdata', files.data, ...CLUSTER_OPTIONS]);
  await mkdir(SHARED_CACHE, { recursive: true });
  await using copy = await mkdtempDisposable(`${kept}.`);
  await run('cp', ['--archive', files.data, join(copy.path, 'data')]);
  await rename(join(copy.path, 'data'), kept).catch((error: unknown) => {
    // Another worker has created it meanwhile.
    if (!existsSync(kept)) throw error;
  });
  return kept;
}

let user: Promise<{ readonly uid: number; readonly gid: number }> | null = null;

/** The user that PostgreSQL runs as. */
function postgresUser(): Promise<{ readonly uid: number; readonly gid: number }> {
  user ??= run('getent', ['passwd', 'postgres']).then(({ stdout }) => {
    const [, , uid, gid] = stdout.split(':');
    return { uid: Number(uid), gid: Number(gid) };
  });
  return user;
}
