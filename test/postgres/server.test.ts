import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, onTestFinished, test } from 'vitest';
import { postgresSkipReason } from '../support/postgres/cluster.ts';
import { psql } from '../support/postgres/psql.ts';
import { type PostgresServer, startPostgres } from '../support/postgres/server.ts';
import { childrenOf, isRunning } from '../support/processes.ts';
import { setUpOnce } from '../support/set-up.ts';
import { stateFolder } from '../support/state-folder.ts';
import { waitFor } from '../support/wait-for.ts';

let server: PostgresServer;

setUpOnce(
  async (parts) => {
    server = parts.use(await startPostgres());
  },
  { skipReason: postgresSkipReason },
);

/** The same URL with another value of `sslmode`. */
function withSslMode(url: string, mode: string): string {
  const changed = new URL(url);
  changed.searchParams.set('sslmode', mode);
  return changed.href;
}

test('a database belongs to a role without other rights, which connects with TLS and its password', async () => {
  const database = await server.createDatabase();
  const other = await server.createDatabase();
  const encrypted = 'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid();';
  expect(await psql(database.url, `CREATE TABLE grants (name text); ${encrypted}`)).toBe('t');
  await expect(psql(withSslMode(database.url, 'disable'), encrypted)).rejects.toThrow('no encryption');
  const guessed = server.urlOf({ ...database, password: 'guessed' });
  await expect(psql(guessed, encrypted)).rejects.toThrow('password authentication failed');
  await expect(psql(database.url, 'CREATE ROLE another;')).rejects.toThrow('permission denied');
  await expect(psql(database.url, `DROP DATABASE ${other.name};`)).rejects.toThrow('must be owner');
});

test('a superuser looks into a database and damages it', async () => {
  const database = await server.createDatabase();
  await psql(
    database.url,
    "CREATE TABLE grants (name text, scope text); INSERT INTO grants VALUES ('a', 'x'), ('b', 'y');",
  );
  expect(await server.sql(database, 'SELECT * FROM grants ORDER BY name;')).toBe('a|x\nb|y');
  await server.sql(database, 'DROP TABLE grants;');
  await expect(psql(database.url, 'SELECT * FROM grants;')).rejects.toThrow('does not exist');
});

test('a server without TLS accepts connections without TLS', async () => {
  await using plain = await startPostgres({ tls: false });
  const { url } = await plain.createDatabase();
  expect(await psql(url, 'SHOW ssl;')).toBe('off');
  await expect(psql(withSslMode(url, 'require'), 'SELECT 1;')).rejects.toThrow('does not support SSL');
});

test('a server syncs its files if a test asks for it, and takes further settings', async () => {
  await using synced = await startPostgres({ tls: false, fsync: true, settings: { statement_timeout: '2s' } });
  expect(await synced.sql('postgres', 'SHOW fsync; SHOW statement_timeout;')).toBe('on\n2s');
  expect(await server.sql('postgres', 'SHOW fsync;')).toBe('off');
});

test.for([
  ['smart', () => server.stop('smart')],
  ['fast', () => server.stop('fast')],
  ['immediate', () => server.stop('immediate')],
  ['kill', () => server.kill()],
] as const)('a server that ended by %s has every commit when it starts again', async ([, end]) => {
  const { url } = await server.createDatabase();
  await psql(url, 'CREATE TABLE counts AS SELECT generate_series(1, 1000);');
  await end();
  await expect(psql(url, 'SELECT count(*) FROM counts;')).rejects.toThrow('Connection refused');
  await server.start();
  expect(await psql(url, 'SELECT count(*) FROM counts;')).toBe('1000');
});

test('a restart ends the sessions of clients', async () => {
  const { url } = await server.createDatabase();
  const session = psql(url, 'SELECT pg_sleep(1000);').catch(String);
  await waitFor(async () => expect(await sleepers(server)).toBe('1'));
  await server.restart();
  expect(await session).toContain('terminating connection');
});

test('a paused server does not answer until it is resumed, or killed', async () => {
  const { url } = await server.createDatabase();
  let hasAnswered = false;
  await server.pause();
  const answer = psql(url, 'SELECT 42;').finally(() => {
    hasAnswered = true;
  });
  // Long enough for a server that runs.
  await psqlElsewhere();
  expect(hasAnswered).toBe(false);
  await server.resume();
  expect(await answer).toBe('42');

  await server.pause();
  await server.kill();
  await server.start();
  expect(await psql(url, 'SELECT 43;')).toBe('43');
});

/** A process that starts a server, pauses it and waits. */
const PAUSED_SERVER = `
  const { startPostgres } = await import(process.argv[1]);
  const server = await startPostgres({ tls: false });
  await server.pause();
  console.log('paused');
  setInterval(() => undefined, 1000);`;

test('a server ends with the process that started it, even if that is killed and the server is paused', async () => {
  const script = join(import.meta.dirname, '../support/postgres/server.ts');
  // Nobody else deletes the server's files. PostgreSQL's user must reach them.
  using folder = stateFolder();
  chmodSync(folder.path, 0o711);
  const starter = spawn(process.execPath, ['--input-type=module', '-e', PAUSED_SERVER, script], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, TMPDIR: folder.path },
  });
  const { pid = 0 } = starter;
  onTestFinished(() => void starter.kill('SIGKILL'));
  await once(createInterface({ input: starter.stdout }), 'line');
  const processes = descendants(pid);
  onTestFinished(() => {
    for (const left of processes.filter(isRunning)) process.kill(left, 'SIGKILL');
  });
  // The parent of the first process, that one, and at least the checkpointer and the WAL writer.
  expect(processes.length).toBeGreaterThan(3);
  starter.kill('SIGKILL');
  await waitFor(() => expect(processes.filter(isRunning)).toEqual([]));
});

function descendants(pid: number): number[] {
  return childrenOf(pid).flatMap((child) => [child, ...descendants(child)]);
}

/** The number of sessions that sleep. */
function sleepers(of: PostgresServer): Promise<string> {
  return of.sql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%';");
}

/** A complete session at another server. */
async function psqlElsewhere(): Promise<void> {
  await using other = await startPostgres({ tls: false });
  await other.sql('postgres', 'SELECT 1;');
}
