import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, type TestContext } from 'vitest';
import { MOST_SESSIONS } from '../../src/core/session.ts';
import { type Emulator, startEmulator } from '../../src/emulator/index.ts';
import { DEVICE_CODE_GRANT } from '../../src/lan/oauth/schemas.ts';
import { expectError } from '../lan/oauth-error.ts';
import { type Answer, basic, FORM, HubClient, jsonOf } from '../lan/wire.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { applianceStatus, ask, pairFleet, refreshSends, rememberIssued, startRefresh, until } from './fleet.ts';
import { Load } from './load.ts';
import { SmallDisk } from './small-disk.ts';

const NAMES = ['cellar', 'roof', 'garage'];
const unwritable = { state: 'retrying', problem: { code: 'store_unwritable' } };
const well = { state: 'active', problem: null };

describe.concurrent('a disk', () => {
  it('that is full starts no refresh, ends no service, and is made use of again when there is room', async (ctx) => {
    await using home = await smallHome(ctx, 'tmpfs', 12);
    const { hub, emulator, disk, load } = home;
    disk.fill();
    for (const name of NAMES)
      expect(await until(hub, name, ({ problem }) => problem !== null, 40)).toMatchObject(unwritable);
    // The journal's last block may have had room for the beginning of some, and the ballast for their ends.
    const before = refreshSends(emulator).length;
    expect(before).toBeLessThanOrEqual(NAMES.length);
    await sleep(4000);
    expect(refreshSends(emulator)).toHaveLength(before);
    for (const name of NAMES) expect(await applianceStatus(hub, name)).toMatchObject({ ...unwritable, expires_in: 0 });

    disk.makeRoom();
    for (const name of NAMES) await until(hub, name, ({ state }) => state === 'active');
    await hub.kill('SIGKILL');
    await hub.launch();
    for (const name of NAMES) expect(await ask(hub, (control) => control.refresh(name))).toMatchObject(well);
    await load[Symbol.asyncDispose]();
    expect(load.refused).toEqual([]);
    expect(new Set(load.refusals.map(({ status }) => status))).toEqual(new Set([503]));
    expect(refreshSends(emulator).every(({ sends }) => sends === 1)).toBe(true);
  });

  it('that fills up while answers are under way has room for them, and the next start knows them', async (ctx) => {
    await using home = await smallHome(ctx, 'tmpfs', 3600);
    const { hub, emulator, disk } = home;
    home.whenAnswering(NAMES.length, () => disk.fill());
    for (const name of NAMES) startRefresh(hub, name);
    for (const name of NAMES) await until(hub, name, ({ problem }) => problem === null && allRefreshed(emulator));
    await hub.kill('SIGKILL');
    await hub.launch();
    for (const name of NAMES) expect(await applianceStatus(hub, name)).toMatchObject(well);
    // The room for answers is used up, so none is asked for.
    expect(await ask(hub, (control) => control.refresh('cellar'))).toMatchObject(unwritable);
    expect(refreshSends(emulator)).toHaveLength(NAMES.length);
    disk.makeRoom();
    for (const name of NAMES) expect(await ask(hub, (control) => control.refresh(name))).toMatchObject(well);
    expect(refreshSends(emulator).map(({ sends }) => sends)).toEqual([1, 1, 1, 1, 1, 1]);
  });

  it('without any room at all leaves the answers in memory, and they are written down before the hub ends', async (ctx) => {
    await using home = await smallHome(ctx, 'tmpfs', 3600);
    const { hub, emulator, disk, load } = home;
    home.whenAnswering(NAMES.length, () => {
      rmSync(join(hub.directory, 'state/ballast'), { force: true });
      disk.fill();
    });
    for (const name of NAMES) startRefresh(hub, name);
    for (const name of NAMES)
      expect(await until(hub, name, ({ problem }) => problem !== null)).toMatchObject(unwritable);
    await sleep(500);
    expect(load.handOuts.at(-1)).toMatchObject({ generation: 2, accepted: true });
    disk.makeRoom();
    await hub.kill('SIGTERM');
    await hub.launch();
    for (const name of NAMES) expect(await ask(hub, (control) => control.refresh(name))).toMatchObject(well);
    expect(refreshSends(emulator).map(({ sends }) => sends)).toEqual([1, 1, 1, 1, 1, 1]);
  });

  it('that turns read-only starts no refresh, and what came before it did is served from memory', async (ctx) => {
    await using home = await smallHome(ctx, 'ext4', 3600);
    const { hub, emulator, disk, load } = home;
    home.whenAnswering(1, () => disk.breakDown());
    startRefresh(hub, 'cellar');
    expect(await until(hub, 'cellar', ({ problem }) => problem !== null)).toMatchObject(unwritable);
    expect(await ask(hub, (control) => control.refresh('roof'))).toMatchObject(unwritable);
    expect(await ask(hub, (control) => control.refresh('cellar'))).toMatchObject(unwritable);
    expect(refreshSends(emulator)).toHaveLength(1);
    await sleep(1000);
    const newest = (name: string) => load.handOuts.findLast(({ appliance }) => appliance === name);
    expect(newest('cellar')).toMatchObject({ generation: 2, accepted: true });
    expect(newest('roof')).toMatchObject({ generation: 1, accepted: true });

    await hub.kill('SIGTERM');
    // Not even the control socket can be made, and the tokens on the disk are handed out all the same.
    await hub.launch();
    const before = load.handOuts.length;
    await eventually(async () => load.handOuts.slice(before).some(({ appliance }) => appliance === 'roof'));
    expect(load.handOuts.slice(before).every(({ accepted }) => accepted)).toBe(true);
    expect(refreshSends(emulator)).toHaveLength(1);
    await hub.kill();
    disk.repair();
    await hub.launch();
    for (const name of NAMES) await until(hub, name, ({ state }) => state === 'active');
    for (const name of NAMES) expect(await ask(hub, (control) => control.refresh(name))).toMatchObject(well);
    expect(load.refused).toEqual([]);
    // The one that never got to the disk was lost with the power, as any answer on its way.
    expect(Math.max(...refreshSends(emulator).map(({ sends }) => sends))).toBe(2);
  });
});

it.concurrent('a hub that was started on a read-only disk goes on by itself when that can be written', async (ctx) => {
  await using home = await smallHome(ctx, 'tmpfs', 3600);
  const { hub, emulator, disk, load } = home;
  await hub.kill('SIGKILL');
  disk.protect(true);
  await hub.launch();
  const { pid } = hub;
  const before = load.handOuts.length;
  await eventually(async () => load.handOuts.length >= before + 6);
  disk.protect(false);
  // It begins anew with what is on the disk; before that the control socket may come, and go once more.
  await eventually(async () => readFileSync(hub.log, 'utf8').split('"hub started"').length === 3, 30);
  for (const name of NAMES) await eventually(() => applianceStatus(hub, name).catch(() => null), 30);
  for (const name of NAMES) await until(hub, name, ({ state }) => state === 'active', 30);
  for (const name of NAMES) expect(await ask(hub, (control) => control.refresh(name))).toMatchObject(well);
  expect(hub.pid).toBe(pid);
  expect(load.refused).toEqual([]);
  expect(refreshSends(emulator).every(({ sends }) => sends === 1)).toBe(true);
});

it.concurrent('a refresh token of the hub’s own that is revoked on a full disk is told to be revoked again, and stays so after a restart', async (ctx) => {
  await using home = await smallHome(ctx, 'tmpfs', 3600);
  const { hub, emulator, disk } = home;
  await using client = await HubClient.of(hub);
  const headers = { authorization: basic(await hub.addAppliance('lamp')), 'content-type': FORM };
  const post = (path: string, form: Record<string, string>) =>
    client.https(path, { method: 'POST', headers, body: new URLSearchParams(form).toString() });
  const ownToken = async () => {
    const { device_code, user_code } = jsonOf(await post('/oauth/device_authorization', {}));
    const opened = await post('/pair', { user_code: String(user_code) });
    const state = new URL(String(opened.headers['location'])).searchParams.get('state') ?? '';
    await (await fetch((await emulator.login({ state, user: 'demo' })).location)).text();
    const redeemed = await post('/oauth/token', { grant_type: DEVICE_CODE_GRANT, device_code: String(device_code) });
    const token = String(jsonOf(redeemed)['refresh_token']);
    rememberSecrets([String(device_code), token]);
    return token;
  };
  const tokens: string[] = [];
  while (tokens.length < MOST_SESSIONS) tokens.push(await ownToken());
  const isGood = async (token: string) =>
    (await post('/oauth/token', { grant_type: 'refresh_token', refresh_token: token })).status === 200;
  for (const token of tokens) expect(await isGood(token)).toBe(true);

  // Another round where the hub gave something up meanwhile, such as a copy of its store that found no room.
  let token = '';
  let revoked: Answer;
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

/** The database's journal may be begun again from its front, and has room then however full the disk is. */
async function useUpJournal(hub: HubProcess): Promise<void> {
  for (let number = 0; number < 200; number += 1) {
    const failed = await hub.addAppliance(`filler-${number}`).then(
      () => false,
      () => true,
    );
    if (failed) return;
  }
  throw new Error('the journal has room without end');
}

/** A hub with three appliances at work, its state on a small disk. Skips the test where nothing may be mounted. */
async function smallHome(ctx: TestContext, kind: 'tmpfs' | 'ext4', tokenLifetime: number) {
  await using parts = new AsyncDisposableStack();
  let whenAnswering: () => void | Promise<void> = () => undefined;
  const emulator = parts.use(
    await startEmulator({
      tokenLifetime,
      refreshGrace: kind === 'ext4' ? 1 : 0,
      intercept: { answering: ({ endpoint }) => (endpoint === 'token' ? whenAnswering() : undefined) },
    }),
  );
  const hub = parts.use(await HubProcess.prepare({ emulator }));
  const disk = parts.use(SmallDisk.mount(hub, kind) ?? ctx.skip('needs root and a kernel that lets it mount'));
  await hub.launch();
  const fleet = await pairFleet(hub, emulator, NAMES);
  // A copy that was being made when the disk filled up would leave room behind.
  const store = join(hub.directory, 'state/latchkey.db.copy');
  await eventually(async () => existsSync(store) && !existsSync(`${store}.new`));
  // A journal that was begun again from its front has room for writes, full disk or not; that of a fresh start has none.
  await hub.kill('SIGTERM');
  await hub.launch();
  const load = parts.use(await Load.start(hub, emulator, fleet, 500));
  const running = parts.move();
  return {
    hub,
    emulator,
    disk,
    load,
    /** Does something once, when the portal has done what so many requests asked and is about to say so. */
    whenAnswering(count: number, act: () => void) {
      const all = Promise.withResolvers<void>();
      let waiting = 0;
      whenAnswering = () => {
        waiting += 1;
        if (waiting === count) {
          act();
          whenAnswering = () => undefined;
          all.resolve();
        }
        return all.promise;
      };
    },
    async [Symbol.asyncDispose]() {
      rememberIssued(emulator);
      await running.disposeAsync();
    },
  };
}

function allRefreshed(emulator: Emulator): boolean {
  return emulator.grants().every(({ generation }) => generation === 2);
}
