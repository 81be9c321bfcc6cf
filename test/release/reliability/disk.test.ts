import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { MAX_SESSIONS } from '../../../src/core/appliances/session.ts';
import { DEVICE_CODE_GRANT_TYPE } from '../../../src/lan/oauth/request-schemas.ts';
import { basicAuthorization, FORM, HubClient, type HubResponse, parseJsonBody } from '../../lan/hub-client.ts';
import { expectError } from '../../lan/oauth-error.ts';
import { countRefreshSends, logIn, refreshUntilActive } from '../../reliability/fleet.ts';
import type { ReceivedToken, TokenLoad } from '../../reliability/load.ts';
import { startSmallHome } from '../../reliability/small-home.ts';
import { eventually, type HubProcess } from '../../support/hub-process.ts';
import { rememberSecrets } from '../../support/logs.ts';

const NAMES = ['cellar', 'roof', 'garage'];
const unwritable = { state: 'retrying', problem: { code: 'store_unwritable' } };

describe.concurrent('hub on a failing disk', () => {
  it('the hub keeps responses in memory while there is no room for them, and saves them later', async (ctx) => {
    await using home = await startSmallHome(ctx, 'tmpfs', NAMES);
    const { hub, emulator, disk } = home;
    await using load = await home.startLoad();
    await home.refreshAnd(NAMES, () => {
      rmSync(join(hub.directory, 'state/ballast'), { force: true });
      disk.fill();
    });
    for (const name of NAMES)
      expect(await hub.until(name, ({ problem }) => problem !== null)).toMatchObject(unwritable);
    await eventually(async () => NAMES.every((name) => newest(load, name)?.generation === 2));
    disk.makeRoom();
    await hub.kill('SIGTERM');
    await hub.launch();
    for (const name of NAMES) await refreshUntilActive(hub, name);
    expect(countRefreshSends(emulator).map(({ sends }) => sends)).toEqual(Array(2 * NAMES.length).fill(1));
    await load[Symbol.asyncDispose]();
    expect(load.refused).toEqual([]);
    expect(load.refusals).toEqual([]);
  });

  it('the hub starts no refresh on a disk that turned read-only, and serves the last result from memory', async (ctx) => {
    await using home = await startSmallHome(ctx, 'ext4', NAMES);
    const { hub, emulator, disk } = home;
    await using load = await home.startLoad();
    await home.refreshAnd(['cellar'], () => disk.breakDown());
    expect(await hub.until('cellar', ({ problem }) => problem !== null)).toMatchObject(unwritable);
    expect(await hub.ask((control) => control.request('refresh', { name: 'roof' }))).toMatchObject(unwritable);
    expect(await hub.ask((control) => control.request('refresh', { name: 'cellar' }))).toMatchObject(unwritable);
    expect(countRefreshSends(emulator)).toHaveLength(1);
    await eventually(async () => newest(load, 'cellar')?.generation === 2);
    expect(newest(load, 'roof')?.generation).toBe(1);

    await hub.kill('SIGTERM');
    // Not even the control socket can be created, but the tokens on the disk are issued nevertheless.
    await hub.launch();
    const before = load.handOuts.length;
    await eventually(async () => load.handOuts.slice(before).some(({ appliance }) => appliance === 'roof'));
    expect(load.handOuts.slice(before).every(({ accepted }) => accepted)).toBe(true);
    expect(countRefreshSends(emulator)).toHaveLength(1);
    await hub.kill();
    disk.repair();
    await hub.launch();
    for (const name of NAMES) await hub.until(name, ({ state }) => state === 'active');
    for (const name of NAMES) await refreshUntilActive(hub, name);
    expect(load.refused).toEqual([]);
    // The tokens that never reached the disk were lost with the kill, like any lost answer.
    expect(Math.max(...countRefreshSends(emulator).map(({ sends }) => sends))).toBe(2);
  });
});

it.concurrent('a hub that was started on a read-only disk resumes in full once the disk is writable', async (ctx) => {
  await using home = await startSmallHome(ctx, 'tmpfs', NAMES);
  const { hub, emulator, disk } = home;
  await using load = await home.startLoad();
  await hub.kill('SIGKILL');
  disk.protect(true);
  await hub.launch();
  const { pid } = hub;
  const before = load.handOuts.length;
  await eventually(async () => load.handOuts.length >= before + 6);
  disk.protect(false);
  // The hub starts again with what is on the disk; before that the control socket may appear and disappear once more.
  await eventually(async () => readFileSync(hub.log, 'utf8').split('"hub_started"').length === 3, 30);
  for (const name of NAMES) await eventually(() => hub.appliance(name).catch(() => null), 30);
  for (const name of NAMES) await hub.until(name, ({ state }) => state === 'active', 30);
  for (const name of NAMES) await refreshUntilActive(hub, name);
  expect(hub.pid).toBe(pid);
  expect(load.refused).toEqual([]);
  expect(countRefreshSends(emulator).every(({ sends }) => sends === 1)).toBe(true);
});

it.concurrent('a refresh token of the hub that is revoked on a full disk gets 503, and stays revoked after a restart', async (ctx) => {
  await using home = await startSmallHome(ctx, 'tmpfs', NAMES);
  const { hub, emulator, disk } = home;
  await using client = await HubClient.of(hub);
  const headers = { authorization: basicAuthorization(await hub.addAppliance('lamp')), 'content-type': FORM };
  const post = (path: string, form: Record<string, string>) =>
    client.https(path, { method: 'POST', headers, body: new URLSearchParams(form).toString() });
  const ownToken = async () => {
    const { device_code, user_code } = parseJsonBody(await post('/oauth/device_authorization', {}));
    const opened = await post('/pair', { user_code: String(user_code) });
    await logIn(emulator, String(opened.headers['location']));
    const redeemed = await post('/oauth/token', {
      grant_type: DEVICE_CODE_GRANT_TYPE,
      device_code: String(device_code),
    });
    const token = String(parseJsonBody(redeemed)['refresh_token']);
    rememberSecrets([String(device_code), token]);
    return token;
  };
  const tokens: string[] = [];
  while (tokens.length < MAX_SESSIONS) tokens.push(await ownToken());
  const isGood = async (token: string) =>
    (await post('/oauth/token', { grant_type: 'refresh_token', refresh_token: token })).status === 200;
  for (const token of tokens) expect(await isGood(token)).toBe(true);

  // Repeated if the hub has released space meanwhile, for example that of a failed snapshot.
  let token = '';
  let revoked: HubResponse;
  do {
    token = tokens.pop() ?? expect.fail('the disk has room without end');
    disk.fill();
    await useUpJournal(hub);
    revoked = await post('/oauth/revoke', { token });
  } while (revoked.status === 200);
  expectError(revoked, 503, 'temporarily_unavailable');
  expect(Number(revoked.headers['retry-after'])).toBeGreaterThan(0);
  expect(await isGood(token)).toBe(false);
  disk.makeRoom();
  await hub.kill('SIGTERM');
  await hub.launch();
  expect(await isGood(token)).toBe(false);
  expect(await post('/oauth/revoke', { token })).toMatchObject({ status: 200 });
});

/** Uses up the room in the WAL, which may be reused from its beginning and then has room even on a full disk. */
async function useUpJournal(hub: HubProcess): Promise<void> {
  for (let number = 0; number < 200; number += 1) {
    const failed = await hub.addAppliance(`filler-${number}`).then(
      () => false,
      () => true,
    );
    if (failed) return;
  }
  throw new Error('the WAL still has room');
}

/** The newest token that an appliance received. */
function newest(load: TokenLoad, name: string): ReceivedToken | undefined {
  return load.handOuts.findLast(({ appliance }) => appliance === name);
}
