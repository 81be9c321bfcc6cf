// A backup of Home Assistant: the command that runs before it, and a copy without the files that it leaves out.
import { execFile } from 'node:child_process';
import { readdirSync, rmSync } from 'node:fs';
import { join, matchesGlob } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { EmulatorProcess } from '../../support/emulator-process.ts';
import { HubProcess } from '../../support/hub-process.ts';
import { stateFolder } from '../../support/state-folder.ts';
import { buildAppRepository, readAppConfig } from '../package/home-assistant-app.ts';

const run = promisify(execFile);

/** As the Supervisor matches a path: Python's PurePath.match compares the last parts with those of the pattern. */
function isExcluded(path: string, patterns: readonly string[]): boolean {
  const parts = path.split('/');
  return patterns.some((pattern) => {
    const own = pattern.split('/');
    const tail = parts.slice(-own.length);
    return tail.length === own.length && own.every((part, index) => matchesGlob(tail[index] ?? '', part));
  });
}

/** Copies the state as the Supervisor backs up `/data/latchkey`: with owners, modes and times. */
async function backUpFiles(state: string, to: string, patterns: readonly string[]): Promise<void> {
  await run('cp', ['-a', state, to]);
  for (const name of readdirSync(to)) {
    if (isExcluded(`/data/addons/data/1a2b3c4d_latchkey/latchkey/${name}`, patterns)) rmSync(join(to, name));
  }
}

/** How many refresh requests the portal has got. */
async function countRefreshes(emulator: EmulatorProcess): Promise<number> {
  const { answer } = await emulator.ask('GET', '/_emulator/requests');
  const { requests } = answer as { requests: { form: Record<string, string> }[] };
  return requests.filter(({ form }) => form['grant_type'] === 'refresh_token').length;
}

it('a hub restored from a backup of Home Assistant is the same hub, and doubts its grants instead of using them up', async () => {
  using folder = stateFolder();
  const app = readAppConfig(await buildAppRepository(folder.path));
  await using emulator = await EmulatorProcess.start('--on-reuse', 'revoke-family', '--token-lifetime', '3600');
  await using hub = await HubProcess.start({ emulator, appPortal: { retry_lost_answer: 'late' }, here: true });
  const state = join(hub.directory, 'state');
  const wallbox = await hub.addAppliance('wallbox');
  const heater = await hub.addAppliance('heater');
  for (const name of ['wallbox', 'heater']) {
    await hub.pair(name, emulator);
    await hub.ask((control) => control.request('refresh', { name }));
  }
  const before = (await hub.status()).hub;
  const { code } = await hub.setupCode();
  expect(before.config_file).toBe(join(hub.directory, 'options.json'));

  const [program, ...args] = app.backup_pre.split(' ');
  expect(program).toBe('latchkey');
  expect(await hub.cli(...args)).toMatchObject({ status: 0, stderr: '' });
  const copy = join(folder.path, 'copy');
  await backUpFiles(state, copy, app.backup_exclude);
  expect(readdirSync(copy).sort()).toEqual(['latchkey.db.copy', 'store.key']);

  for (let round = 0; round < 2; round++) await hub.ask((control) => control.request('refresh', { name: 'wallbox' }));
  await hub.kill('SIGTERM');
  rmSync(state, { recursive: true });
  await run('cp', ['-a', copy, state]);
  const refreshes = await countRefreshes(emulator);
  expect(refreshes).toBe(4);
  await hub.launch();

  const restored = await hub.status();
  const { id, name, ca_fingerprint } = before;
  expect(restored.hub).toMatchObject({ id, name, ca_fingerprint });
  expect((await hub.setupCode()).code).toBe(code);
  expect(restored.hub.problems).toMatchObject([
    {
      code: 'store_recovered',
      message: expect.stringMatching(
        /^The store \S+ was missing, as after a restore of a backup that leaves it out; it was made again from the snapshot of 2\S+Z; the grants of (wallbox, heater|heater, wallbox) come from the snapshot, and their refresh tokens may be used up$/,
      ),
    },
  ]);
  for (const each of restored.appliances) {
    expect(each).toMatchObject({
      state: 'retrying',
      problem: { code: 'answer_lost', message: expect.stringMatching(/^The grant was restored from a copy of /) },
    });
    // The refresh token is kept back until shortly before the access token ends.
    expect(each.refresh_in).toBeGreaterThan(2700);
  }
  for (const appliance of [wallbox, heater]) expect(await hub.requestToken(appliance)).toMatchObject({ status: 200 });
  expect(await countRefreshes(emulator)).toBe(refreshes);

  // The grant of the backup is still the latest one of the heater, but not of the wallbox.
  expect(await hub.ask((control) => control.request('refresh', { name: 'heater' }))).toMatchObject({
    state: 'active',
    problem: null,
  });
  await hub.ask((control) => control.request('refresh', { name: 'wallbox' })).catch(() => null);
  const refused = await hub.until('wallbox', (found) => found.state === 'needs_pairing');
  expect(refused.problem?.message).toMatch(
    /^The grant was restored from a copy of .*no longer accepts its refresh token/,
  );
  expect(await hub.requestToken(wallbox)).toMatchObject({ status: 200 });
  expect(await countRefreshes(emulator)).toBe(refreshes + 2);

  await hub.pair('wallbox', emulator);
  await hub.kill('SIGTERM');
  await hub.launch();
  const again = await hub.status();
  expect(again.appliances.map((found) => found.state)).toEqual(['active', 'active']);
  expect(again.hub).not.toHaveProperty('problems');
});
