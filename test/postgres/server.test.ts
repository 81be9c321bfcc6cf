// The servers that tests start.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, onTestFinished, test } from 'vitest';
import { postgresSkipReason } from '../support/postgres/cluster.ts';
import { childrenOf, isRunning } from '../support/processes.ts';
import { skipIfUnavailable } from '../support/set-up.ts';
import { stateFolder } from '../support/state-folder.ts';
import { waitFor } from '../support/wait-for.ts';

skipIfUnavailable(postgresSkipReason);

/** A process that starts a server, runs statements, pauses it and waits. */
const PAUSED_SERVER = `
  const { startPostgres } = await import(process.argv[1]);
  const server = await startPostgres();
  const body = "$$ BEGIN RETURN 'a;b'; END $$";
  const made = 'CREATE FUNCTION f() RETURNS text LANGUAGE plpgsql AS ' + body;
  const rows = await server.sql(await server.createDatabase(), made + "; SELECT f(), 1 = 1; SELECT NULL, 'c;d'");
  await server.pause();
  console.log(JSON.stringify(rows));
  setInterval(() => undefined, 1000);`;

test('a server runs several statements, and ends with the process that started it, even if that is killed and the server is paused', async () => {
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
  const [rows] = await once(createInterface({ input: starter.stdout }), 'line');
  expect(JSON.parse(rows)).toBe('a;b|t\n|c;d');
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
