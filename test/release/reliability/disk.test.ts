import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, type TestContext } from 'vitest';
import { MAX_SESSIONS_PER_APPLIANCE } from '../../../src/core/appliances/session.ts';
import type { Emulator } from '../../../src/emulator/index.ts';
import { DEVICE_CODE_GRANT_TYPE } from '../../../src/lan/oauth/request-schemas.ts';
import { basicAuthorization, FORM, HubClient, type HubResponse, parseJsonBody } from '../../lan/hub-client.ts';
import { expectError } from '../../lan/oauth-error.ts';
import { countRefreshSends, logIn, pairFleet, startRefresh } from '../../reliability/fleet.ts';
import { type ReceivedToken, TokenLoad } from '../../reliability/load.ts';
import { SmallDisk } from '../../reliability/small-disk.ts';
import { eventually, HubProcess } from '../../support/hub-process.ts';
import { rememberSecrets } from '../../support/logs.ts';
import { startPausablePortal } from '../../support/pausable-portal.ts';

const NAMES = ['cellar', 'roof', 'garage'];
const unwritable = { state: 'retrying', problem: { code: 'store_unwritable' } };
const well = { state: 'active', problem: null };

describe.concurrent('hub on a failing disk', () => {
  it('the hub saves responses in flight while the disk fills up, and keeps them in memory when there is no room', async (ctx) => {
    await using home = await smallHome(ctx, 'tmpfs');
    const { hub, emulator, disk } = home;
    // A WAL that is reused from its beginning has room for writes even on a full disk; after a fresh start it has none.
    await hub.kill('SIGTERM');
    await hub.launch();
    await using load = await home.startLoad();
    await home.refreshAnd(NAMES, () => disk.fill());
    for (const name of NAMES) await hub.until(name, ({ problem }) => problem === null && allRefreshed(emulator));
    await hub.kill('SIGKILL');
    await hub.launch();
    for (const name of NAMES) expect(await hub.appliance(name)).toMatchObject(well);
    // The reserved space for refreshed tokens is used up, so the hub sends no refresh.
    expect(await hub.ask((control) => control.refresh('cellar'))).toMatchObject(unwritable);
    expect(countRefreshSends(emulator)).toHaveLength(NAMES.length);
    disk.makeRoom();
    for (const name of NAMES) expect(await hub.ask((control) => control.refresh(name))).toMatchObject(well);
    await hub.kill('SIGTERM');
    await hub.launch();

    await home.refreshAnd(NAMES, () => {
      rmSync(join(hub.directory, 'state/ballast'), { force: true });
      disk.fill();
    });
    for (const name of NAMES)
      expect(await hub.until(name, ({ problem }) => problem !== null)).toMatchObject(unwritable);
    await eventually(async () => NAMES.every((name) => newest(load, name)?.generation === 4));
    disk.makeRoom();
    await hub.kill('SIGTERM');
    await hub.launch();
    for (const name of NAMES) expect(await hub.ask((control) => control.refresh(name))).toMatchObject(well);
    expect(countRefreshSends(emulator).map(({ sends }) => sends)).toEqual(Array(4 * NAMES.length).fill(1));
    await load[Symbol.asyncDispose]();
    expect(load.refused).toEqual([]);
    expect(load.refusals).toEqual([]);
  });

  it('the hub starts no refresh on a disk that turned read-only, and serves the last result from memory', async (ctx) => {
    await using home = await smallHome(ctx, 'ext4');
    const { hub, emulator, disk } = home;
    await using load = await home.startLoad();
    await home.refreshAnd(['cellar'], () => disk.breakDown());
    expect(await hub.until('cellar', ({ problem }) => problem !== null)).toMatchObject(unwritable);
    expect(await hub.ask((control) => control.refresh('roof'))).toMatchObject(unwritable);
    expect(await hub.ask((control) => control.refresh('cellar'))).toMatchObject(unwritable);
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
    for (const name of NAMES) expect(await hub.ask((control) => control.refresh(name))).toMatchObject(well);
    expect(load.refused).toEqual([]);
    // The tokens that never reached the disk were lost with the kill, like any lost answer.
    expect(Math.max(...countRefreshSends(emulator).map(({ sends }) => sends))).toBe(2);
  });
});

it.concurrent('a hub that was started on a read-only disk resumes in full once the disk is writable', async (ctx) => {
  await using home = await smallHome(ctx, 'tmpfs');
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
  for (const name of NAMES) expect(await hub.ask((control) => control.refresh(name))).toMatchObject(well);
  expect(hub.pid).toBe(pid);
  expect(load.refused).toEqual([]);
  expect(countRefreshSends(emulator).every(({ sends }) => sends === 1)).toBe(true);
});

it.concurrent('a refresh token of the hub that is revoked on a full disk gets 503, and stays revoked after a restart', async (ctx) => {
  await using home = await smallHome(ctx, 'tmpfs');
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
  while (tokens.length < MAX_SESSIONS_PER_APPLIANCE) tokens.push(await ownToken());
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

/** A hub with three paired appliances, its state on a small disk. Skips the test if nothing can be mounted. */
async function smallHome(ctx: TestContext, kind: 'tmpfs' | 'ext4') {
  await using parts = new AsyncDisposableStack();
  const portal = parts.use(await startPausablePortal({ refreshGrace: kind === 'ext4' ? 1 : 0 }));
  const { emulator } = portal;
  const hub = parts.use(await HubProcess.prepare({ emulator }));
  const disk = parts.use(SmallDisk.mount(hub, kind) ?? ctx.skip('needs root and the permission to mount'));
  await hub.launch();
  const fleet = await pairFleet(hub, emulator, NAMES);
  // A snapshot in progress when the disk becomes full would leave free space behind.
  const store = join(hub.directory, 'state/latchkey.db.copy');
  await eventually(async () => existsSync(store) && !existsSync(`${store}.new`));
  const running = parts.move();
  return {
    hub,
    emulator,
    disk,
    /** Makes the appliances request tokens from now on. */
    startLoad: () => TokenLoad.start(hub, emulator, fleet, 500),
    /** Refreshes these appliances, and calls `act` when the portal has acted and is about to respond. */
    async refreshAnd(appliances: readonly string[], act: () => void) {
      portal.hold();
      for (const name of appliances) startRefresh(hub, name);
      await portal.kept(appliances.length);
      act();
      portal.release();
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

function allRefreshed(emulator: Emulator): boolean {
  return emulator.grants().every(({ generation }) => generation === 2);
}

/** The newest token that an appliance received. */
function newest(load: TokenLoad, name: string): ReceivedToken | undefined {
  return load.handOuts.findLast(({ appliance }) => appliance === name);
}
