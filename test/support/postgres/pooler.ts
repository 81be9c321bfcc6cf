import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync } from 'node:fs';
import { chown, mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually, reservePort } from '../hub-process.ts';
import { logFile } from '../logs.ts';
import { AS_POSTGRES, postgresUser, writePrivateFile } from './cluster.ts';
import type { PostgresServer, TestDatabase } from './server.ts';

const PGBOUNCER = '/usr/sbin/pgbouncer';

/** Why PgBouncer can't be started here; null if it can. */
export function poolerSkipReason(): string | null {
  return existsSync(PGBOUNCER) ? null : `${PGBOUNCER} is missing`;
}

/** A PgBouncer on loopback. Disposal kills it and deletes its files. */
export interface TestPooler extends AsyncDisposable {
  readonly port: number;
}

/**
 * Starts PgBouncer in front of a database.
 * @param server without TLS
 * @param settings of the section `[pgbouncer]`
 */
export async function startPooler(
  server: PostgresServer,
  { name, user, password }: TestDatabase,
  settings: Readonly<Record<string, string>>,
): Promise<TestPooler> {
  await using starting = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'latchkey-pgbouncer-'));
  starting.defer(() => rm(folder, { recursive: true, force: true }));
  const { uid, gid } = await postgresUser();
  await chown(folder, uid, gid);
  const port = await reservePort();
  const users = join(folder, 'users.txt');
  await writePrivateFile(users, `"${user}" "${password}"\n`);
  const all = {
    ...{ listen_addr: '127.0.0.1', listen_port: String(port), unix_socket_dir: '' },
    ...{ auth_type: 'scram-sha-256', auth_file: users },
    ...settings,
  };
  const lines = Object.entries(all).map(([key, value]) => `${key} = ${value}\n`);
  const file = join(folder, 'pgbouncer.ini');
  const database = `${name} = host=127.0.0.1 port=${server.port}\n`;
  await writePrivateFile(file, `[databases]\n${database}[pgbouncer]\n${lines.join('')}`);
  const output = openSync(logFile('pgbouncer'), 'a', 0o600);
  const child = spawn('setpriv', [...AS_POSTGRES, '--pdeathsig', 'KILL', PGBOUNCER, file], {
    cwd: '/',
    stdio: ['ignore', output, output],
  });
  closeSync(output);
  const ended = once(child, 'exit');
  starting.defer(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  await eventually(() => accepts(port), 30, 20);
  const resources = starting.move();
  return { port, [Symbol.asyncDispose]: () => resources.disposeAsync() };
}

function accepts(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  const result = new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
  });
  return result.finally(() => socket.destroy());
}
