import { chmodSync, cpSync, createWriteStream, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, it, type TestContext } from 'vitest';
import type { ApplianceStatus, HubStatus } from '../../src/core/administration.ts';
import { SHARED_CACHE } from '../support/compile-cache.ts';
import { eventually } from '../support/hub-process.ts';
import { logFile } from '../support/logs.ts';
import { createLan, type Host, type Process, whyNoLan } from '../support/netns.ts';
import { stateFolder } from '../support/state-folder.ts';

const MAIN = join(import.meta.dirname, '../../src/main.ts');

beforeEach(async (ctx: TestContext) => {
  const reason = await whyNoLan([]);
  if (reason !== null) ctx.skip(reason);
});

it('a hub whose card was copied says so in status, and the older one is not disturbed', {
  timeout: 60_000,
}, async () => {
  using folder = stateFolder();
  await using lan = await createLan(['original', 'copy']);
  const [card, copy] = [join(folder.path, 'card'), join(folder.path, 'copied')];
  write(card);
  const born = serve(lan.hosts.original, card);
  await logged(born, 'hub started');
  expect(await born.stop('SIGTERM')).toBe(0);
  cpSync(card, copy, { recursive: true });
  write(copy);

  const original = serve(lan.hosts.original, card);
  await logged(original, 'announced');
  const copied = serve(lan.hosts.copy, copy);
  await logged(copied, 'hub could not be announced');
  const { hub } = await eventually(async () => {
    const status = await statusOf(lan.hosts.copy, copy);
    return status.hub.problems !== undefined && status;
  });
  expect(hub.problems).toEqual([
    { code: 'hub_id_taken', message: expect.stringMatching(/^Another hub .*card copied\?/), since: expect.any(String) },
  ]);
  const older = (await statusOf(lan.hosts.original, card)).hub;
  expect(older.id).toBe(hub.id);
  expect(older.problems).toBeUndefined();
  expect(await copied.stop('SIGTERM')).toBe(0);
  expect(await original.stop('SIGTERM')).toBe(0);
});

/** Writes the configuration of a hub whose portal is out of reach. */
function write(home: string): void {
  mkdirSync(join(home, 'state'), { recursive: true });
  chmodSync(join(home, 'state'), 0o700);
  writeFileSync(join(home, 'portal.secret'), 'a-client-secret', { mode: 0o600 });
  const toml = [
    '[hub]',
    'name = "Cellar hub"',
    `state_dir = "${home}/state"`,
    '[portals.home]',
    'base_url = "http://127.0.0.1:9"',
    'frontend_url = "http://127.0.0.1:9"',
    'client_id = "0f4b3c52-6a1e-4d9b-9d57-2c8f1e6a7b90"',
    'client_secret_file = "portal.secret"',
  ];
  writeFileSync(join(home, 'latchkey.toml'), `${toml.join('\n')}\n`);
}

function serve(host: Host, home: string): Process {
  const env = { PATH: process.env['PATH'], HOME: home, XDG_CACHE_HOME: SHARED_CACHE };
  const daemon = host.spawn(process.execPath, [MAIN, 'serve', '--config', `${home}/latchkey.toml`], { env });
  daemon.child.stderr?.pipe(createWriteStream(logFile('hub'), { mode: 0o600 }));
  return daemon;
}

function logged(daemon: Process, event: string): Promise<true> {
  return daemon.errorLine((line) => line.includes(`"event":"${event}"`) || undefined);
}

async function statusOf(host: Host, home: string): Promise<{ hub: HubStatus; appliances: ApplianceStatus[] }> {
  const env = { PATH: process.env['PATH'], HOME: home, XDG_CACHE_HOME: SHARED_CACHE };
  return JSON.parse(
    await host.run(process.execPath, [MAIN, 'status', '--json', '--config', `${home}/latchkey.toml`], { env }),
  );
}
