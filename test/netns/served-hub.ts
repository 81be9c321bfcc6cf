import { chmodSync, createWriteStream, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connectControlClient } from '../../src/control/client.ts';
import type { StatusResponse } from '../../src/control/messages.ts';
import { logFile } from '../support/logs.ts';
import type { Host, Process } from '../support/netns.ts';
import { MAIN, SHARED_CACHE } from '../support/program.ts';

/**
 * Writes the configuration of a hub whose portal is unreachable.
 * @param home its directory, which also holds its state
 */
export function writeHubConfiguration(home: string, { name = 'Cellar hub', httpsPort = 8443 } = {}): void {
  mkdirSync(join(home, 'state'), { recursive: true });
  chmodSync(join(home, 'state'), 0o700);
  writeFileSync(join(home, 'portal.secret'), 'a-client-secret', { mode: 0o600 });
  const toml = [
    '[hub]',
    `name = "${name}"`,
    `state_dir = "${home}/state"`,
    '[lan]',
    `https_port = ${httpsPort}`,
    '[metrics]',
    'listen = ""',
    '[portals.home]',
    'base_url = "http://127.0.0.1:9"',
    'frontend_url = "http://127.0.0.1:9"',
    'client_id = "0f4b3c52-6a1e-4d9b-9d57-2c8f1e6a7b90"',
    'client_secret_file = "portal.secret"',
  ];
  writeFileSync(join(home, 'latchkey.toml'), `${toml.join('\n')}\n`);
}

/** Runs the hub of this directory on a host. */
export function serveHub(host: Host, home: string): Process {
  const env = { PATH: process.env['PATH'], HOME: home, XDG_CACHE_HOME: SHARED_CACHE };
  const daemon = host.spawn(process.execPath, [MAIN, 'serve', '--config', `${home}/latchkey.toml`], { env });
  daemon.child.stderr?.pipe(createWriteStream(logFile('hub'), { mode: 0o600 }));
  return daemon;
}

/** Waits until the hub has logged an event. */
export function waitForLogEvent(daemon: Process, event: string): Promise<true> {
  return daemon.errorLine((line) => line.includes(`"event":"${event}"`) || undefined);
}

/** The status of the hub in this directory, wherever it runs. */
export async function readHubStatus(home: string): Promise<StatusResponse> {
  await using control = await connectControlClient([join(home, 'state/control.sock')]);
  return await control.request('status');
}
