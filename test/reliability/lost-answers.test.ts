import { globSync, readFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { CredentialsAnswer } from '../../src/control/messages.ts';
import { type Emulator, type EmulatorOptions, startEmulator } from '../../src/emulator/index.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { logFolder } from '../support/logs.ts';
import {
  applianceStatus,
  ask,
  pairFleet,
  reconfigure,
  refreshSends,
  rememberIssued,
  startRefresh,
  until,
} from './fleet.ts';
import { Load } from './load.ts';
import { Outage } from './outage.ts';

/** What a machine that has other work may be late with a timer, in ms. */
const LATE = 5000;

describe.concurrent('a refresh whose answer is lost', () => {
  it('is tried once more within seconds, and a portal with a grace time gives a successor', async () => {
    await using home = await pairedHome({ refreshGrace: 1 });
    home.lose('answering', 1);
    startRefresh(home.hub, 'wallbox');
    const doubted = await until(home.hub, 'wallbox', ({ problem }) => problem !== null);
    expect(doubted).toMatchObject({ state: 'retrying', problem: { code: 'answer_lost' } });
    expect(doubted.refresh_in).toBeLessThanOrEqual(3);
    await until(home.hub, 'wallbox', ({ state, problem }) => state === 'active' && problem === null);
    await home.endLoad();

    const [first, second] = replayed(home.emulator);
    expect(second - first).toBeGreaterThanOrEqual(1000);
    expect(second - first).toBeLessThan(3000 + LATE);
    expect(home.emulator.grants()).toMatchObject([{ generation: 3, revoked: false }]);
    // The successor of the successor is refreshed as if nothing had been.
    expect(await ask(home.hub, (control) => control.refresh('wallbox'))).toMatchObject({ state: 'active' });
    expect(refreshSends(home.emulator).map(({ sends }) => sends)).toEqual([2, 1]);
  });

  it('a second time is not sent again before the token at hand is about to end', async () => {
    await using home = await pairedHome({ tokenLifetime: 15, refreshGrace: 2 });
    home.lose('answering', 2);
    startRefresh(home.hub, 'wallbox');
    await eventually(async () => refreshSends(home.emulator)[0]?.sends === 2);
    await until(home.hub, 'wallbox', ({ state }) => state === 'active', 20);
    const { handOuts, refusals } = await home.endLoad();
    const issued = handOuts[0]?.issuedAt ?? 0;
    const times = refreshSends(home.emulator)[0]?.times ?? [];
    expect(times).toHaveLength(3);
    expect((times[2] ?? 0) - issued).toBeGreaterThan(0.9 * 15_000 - 500);
    expect((times[2] ?? 0) - issued).toBeLessThan(15_000);
    expect(refusals).toEqual([]);
  });

  it.each(['soon', 'late'] as const)(
    'because the portal never got it is tried again (%s), and no portal minds',
    async (replay) => {
      await using home = await pairedHome({ tokenLifetime: 10, onReuse: 'revoke-family' }, `replay = "${replay}"`);
      home.lose('received', 1);
      startRefresh(home.hub, 'wallbox');
      await until(home.hub, 'wallbox', ({ problem }) => problem?.code === 'answer_lost');
      await until(home.hub, 'wallbox', ({ state }) => state === 'active');
      await home.endLoad();
      const [first, second] = replayed(home.emulator);
      if (replay === 'soon') expect(second - first).toBeLessThan(3000 + LATE);
      else expect(second - first).toBeGreaterThan(6000);
    },
  );

  it('costs the grant at a strict portal, which the token at hand outlives to its last second', async () => {
    await using home = await pairedHome({ tokenLifetime: 10 });
    home.lose('answering', 1);
    startRefresh(home.hub, 'wallbox');
    const refused = await until(home.hub, 'wallbox', ({ state }) => state === 'needs_pairing');
    expect(refused.problem).toMatchObject({
      code: 'refused',
      message: expect.stringMatching(/answer was lost on \d/),
    });
    expect(refused.expires_in).toBeGreaterThan(3);
    await eventually(async () => home.load.refusals.length > 0, 30);
    const { handOuts, refusals } = await home.endLoad();
    expect(handOuts.at(-1)?.expiresIn).toBeLessThanOrEqual(2);
    expect(refusals.map(({ status, error }) => ({ status, error }))).toContainEqual({
      status: 400,
      error: 'invalid_grant',
    });
    expect(refusals.filter(({ error }) => error !== 'invalid_grant')).toEqual([]);
    expect(replayed(home.emulator)).toHaveLength(2);
    expect(home.emulator.requests.filter(({ endpoint }) => endpoint === 'token')).toHaveLength(3);
  });

  it('leaves a portal alone that revokes on reuse (late), until the token at hand has ended', async () => {
    await using home = await pairedHome({ tokenLifetime: 12, onReuse: 'revoke-family' }, 'replay = "late"');
    home.lose('answering', 1);
    startRefresh(home.hub, 'wallbox');
    await until(home.hub, 'wallbox', ({ problem }) => problem?.code === 'answer_lost');
    const refused = await until(home.hub, 'wallbox', ({ state }) => state === 'needs_pairing', 20);
    expect(refused.problem?.message).toMatch(/answer was lost on \d/);
    const { handOuts } = await home.endLoad();
    const [, second] = replayed(home.emulator);
    const ended = (handOuts[0]?.issuedAt ?? 0) + 12_000;
    expect(second).toBeGreaterThan(ended);
    expect(second - ended).toBeLessThan(1000 + LATE);
    expect(handOuts.at(-1)?.expiresIn).toBeLessThanOrEqual(2);
    expect(new Set(handOuts.map(({ generation }) => generation))).toEqual(new Set([1]));
  });

  it('again and again, with the token at hand dead, is not tried in a storm', async () => {
    await using home = await pairedHome({ tokenLifetime: 4, refreshGrace: 100 });
    home.lose('answering', Number.POSITIVE_INFINITY);
    await sleep(12_000);
    home.lose('answering', 0);
    await until(home.hub, 'wallbox', ({ state }) => state === 'active');
    const { refusals } = await home.endLoad();
    const sends = Math.max(...refreshSends(home.emulator).map((token) => token.sends));
    expect(sends).toBeGreaterThanOrEqual(3);
    expect(sends).toBeLessThanOrEqual(10);
    expect(refusals.filter(({ status, retryAfter }) => status !== 503 || !(Number(retryAfter) >= 1))).toEqual([]);
  });
});

describe.concurrent('a portal', () => {
  it('that is out of reach for a while is asked in moderation, and everything is well when it is back', async () => {
    await using emulator = await startEmulator({ tokenLifetime: 10 });
    // Each try is a line for whoever debugs.
    await using hub = await HubProcess.start({ emulator, serve: ['--log-level', 'debug'] });
    const names = ['cellar', 'roof', 'garage'];
    const fleet = await pairFleet(hub, emulator, names);
    await using line = await Outage.before(Number(new URL(emulator.frontendUrl).port));
    await hub.kill('SIGTERM');
    await reconfigure(hub, (toml) => toml.replace(emulator.frontendUrl, `http://127.0.0.1:${line.port}`));
    await hub.launch();
    await using load = await Load.start(hub, emulator, fleet, 250);
    for (const name of names) await ask(hub, (control) => control.refresh(name));

    await line.begin();
    const began = Date.now();
    const asked = refreshSends(emulator).length;
    for (const name of names) {
      const status = await until(hub, name, ({ problem }) => problem !== null, 20);
      expect(status).toMatchObject({ state: 'retrying', problem: { code: 'portal_unreachable' } });
    }
    await sleep(Math.max(0, began + 15_000 - Date.now()));
    for (const name of names)
      expect(await applianceStatus(hub, name)).toMatchObject({ state: 'retrying', expires_in: 0 });
    expect(refreshSends(emulator)).toHaveLength(asked);
    // A second apart or more, whatever the appliances ask for meanwhile.
    for (const name of names) {
      expect(failedRefreshes(name)).toBeGreaterThanOrEqual(3);
      expect(failedRefreshes(name)).toBeLessThanOrEqual(10);
    }
    await line.end();
    for (const name of names) await until(hub, name, ({ state }) => state === 'active');
    await load[Symbol.asyncDispose]();

    expect(load.refused).toEqual([]);
    expect(load.refusals.length).toBeGreaterThan(0);
    for (const refusal of load.refusals) {
      expect(refusal).toMatchObject({ status: 503, error: 'temporarily_unavailable' });
      const served = load.handOuts.findLast(
        ({ appliance, answered }) => appliance === refusal.appliance && answered < refusal.at,
      );
      // The hub counts from when it asked, which on a busy machine is a while before the token was issued.
      expect(refusal.at).toBeGreaterThan((served?.issuedAt ?? Number.NaN) + 8000);
      expect(Number(refusal.retryAfter)).toBeGreaterThanOrEqual(1);
      expect(Number(refusal.retryAfter)).toBeLessThanOrEqual(5);
    }
    expect(refreshSends(emulator).every(({ sends }) => sends === 1)).toBe(true);
    rememberIssued(emulator);
  });

  it('that does not take the secret is asked seldom; the grant is kept, and the right secret mends it', async () => {
    await using home = await pairedHome({});
    const file = join(home.hub.directory, 'portal.secret');
    const right = await readFile(file, 'utf8');
    await home.hub.kill('SIGTERM');
    await writeFile(file, 'not the secret');
    await home.hub.launch();
    startRefresh(home.hub, 'wallbox');
    const status = await until(home.hub, 'wallbox', ({ problem }) => problem !== null);
    expect(status).toMatchObject({
      state: 'retrying',
      problem: { code: 'misconfigured', message: expect.stringContaining('client_secret_file') },
    });
    const asked = home.emulator.requests.filter(({ endpoint }) => endpoint === 'token').length;
    await sleep(5000);
    // 60 s and more apart; the first delay is drawn from 1 s up.
    expect(home.emulator.requests.filter(({ endpoint }) => endpoint === 'token').length - asked).toBeLessThanOrEqual(1);
    await home.hub.kill('SIGTERM');
    await writeFile(file, right);
    await home.hub.launch();
    expect(await ask(home.hub, (control) => control.refresh('wallbox'))).toMatchObject({
      state: 'active',
      problem: null,
    });
    await home.endLoad();
    expect(home.emulator.grants()).toMatchObject([{ generation: 2, revoked: false }]);
  });
});

/** A hub with the appliance `wallbox`, which asks for its token four times a second, and a portal that loses things. */
async function pairedHome(options: EmulatorOptions, portal = '') {
  const left = { received: 0, answering: 0 };
  const drop =
    (moment: keyof typeof left) =>
    ({ endpoint, drop }: { endpoint: string; drop(): void }) => {
      if (endpoint !== 'token' || left[moment] === 0) return;
      left[moment] -= 1;
      drop();
    };
  await using parts = new AsyncDisposableStack();
  const emulator: Emulator = parts.use(
    await startEmulator({ ...options, intercept: { received: drop('received'), answering: drop('answering') } }),
  );
  const hub = parts.use(await HubProcess.start({ emulator, portal }));
  const fleet: CredentialsAnswer[] = await pairFleet(hub, emulator, ['wallbox']);
  const load = parts.use(await Load.start(hub, emulator, fleet, 250));
  const running = parts.move();
  return {
    emulator,
    hub,
    load,
    /** The next `count` refreshes are lost: before the portal looks at them, or when it has done what was asked. */
    lose(moment: keyof typeof left, count: number) {
      left[moment] = count;
    },
    /** Stops asking, and looks whether every token that was handed out was good, all of its time. */
    async endLoad(): Promise<Load> {
      await load[Symbol.asyncDispose]();
      expect(load.handOuts.length).toBeGreaterThan(0);
      expect(load.refused).toEqual([]);
      return load;
    },
    async [Symbol.asyncDispose]() {
      rememberIssued(emulator);
      await running.disposeAsync();
    },
  };
}

/** How many refreshes of an appliance came to nothing, by the logs of the hubs that this file started. */
function failedRefreshes(appliance: string): number {
  const logs = globSync(`hub.${process.pid}.*.log`, { cwd: logFolder() });
  const lines = logs.flatMap((file) => readFileSync(join(logFolder(), file), 'utf8').split('\n'));
  return lines.filter((line) => line.includes('refresh did not succeed') && line.includes(`"${appliance}"`)).length;
}

/** When the one refresh token that was sent twice was sent, in ms since 1970. */
function replayed(emulator: Emulator): [number, number] {
  const twice = refreshSends(emulator).filter(({ sends }) => sends > 1);
  expect(twice.map(({ sends }) => sends)).toEqual([2]);
  return [twice[0]?.times[0] ?? 0, twice[0]?.times[1] ?? 0];
}
