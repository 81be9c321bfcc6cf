import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, createWriteStream } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { reservePort } from './hub-process.ts';
import { logFile } from './logs.ts';
import { waitFor } from './wait-for.ts';

const NGINX = '/usr/sbin/nginx';

/** Why nginx can't be started here; null if it can. */
export function nginxSkipReason(): string | null {
  try {
    accessSync(NGINX, constants.X_OK);
    return null;
  } catch {
    return `${NGINX} is missing`;
  }
}

/** A running nginx with one server. */
export interface Nginx extends AsyncDisposable {
  /** Its address, without a slash at the end. */
  readonly origin: string;
  /** `127.0.0.1`, and its port. */
  readonly host: string;
}

/**
 * Starts nginx on a free port of 127.0.0.1, with files of its own.
 * @param server the directives of its server; `FOLDER` stands for a folder with the files
 * @param files further files in that folder, by name
 */
export async function startNginx(server: string, files: Readonly<Record<string, string>> = {}): Promise<Nginx> {
  await using starting = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'latchkey-nginx-'));
  starting.defer(() => rm(folder, { recursive: true, force: true }));
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content);
  const port = await reservePort();
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (of) => `${of}_temp_path ${folder}/${of};`,
  );
  await writeFile(
    join(folder, 'nginx.conf'),
    `daemon off; master_process off; pid ${folder}/pid; error_log stderr warn;
events {}
http {
  access_log off; ${temporary.join(' ')}
  server {
    listen 127.0.0.1:${port};
${server.replaceAll('FOLDER', folder)}
  }
}
`,
  );
  const log = createWriteStream(logFile('nginx'));
  const child = spawn(NGINX, ['-p', folder, '-c', join(folder, 'nginx.conf')], { stdio: ['ignore', 'ignore', 'pipe'] });
  child.stderr.pipe(log);
  starting.defer(() => stop(child));
  await waitFor(async () => {
    if (child.exitCode !== null) throw new Error(`nginx ended with status ${child.exitCode}; see ${log.path}`);
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    socket.destroy();
  });
  const parts = starting.move();
  const host = `127.0.0.1:${port}`;
  return { origin: `http://${host}`, host, [Symbol.asyncDispose]: () => parts.disposeAsync() };
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGTERM');
  await once(child, 'exit');
}
