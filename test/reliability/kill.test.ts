import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { type Emulator, startEmulator } from '../../src/emulator/index.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import {
  addAppliance,
  applianceStatus,
  ask,
  beginPairing,
  codeSends,
  logIn,
  pairFleet,
  refreshSends,
  rememberIssued,
  startRefresh,
  stateOf,
  until,
  visit,
} from './fleet.ts';
import { Load, whoami } from './load.ts';

/** LATCHKEY_TEST_SEED repeats a run with the same choices. */
const SEED = Number(process.env['LATCHKEY_TEST_SEED'] ?? Date.now() % 1_000_000);

describe.concurrent('kill -9', () => {
  it(`at any moment under load costs no grant (seed ${SEED})`, { timeout: 180_000 }, async () => {
    const fraction = randomFractions(SEED);
    let refreshBegan = Promise.withResolvers<void>();
    await using emulator = await startEmulator({
      tokenLifetime: 15,
      refreshGrace: 1,
      intercept: {
        async received({ endpoint }) {
          if (endpoint !== 'token') return;
          refreshBegan.resolve();
          refreshBegan = Promise.withResolvers();
          await sleep(100 * fraction());
        },
        async answering({ endpoint }) {
          if (endpoint === 'token') await sleep(200 * fraction());
        },
      },
    });
    await using hub = await HubProcess.start({ emulator });
    const names = Array.from({ length: 10 }, (_, index) => `appliance-${index}`);
    await using load = await Load.start(hub, emulator, await pairFleet(hub, emulator, names), 500);

    const end = Date.now() + 60_000;
    let kills = 0;
    let doubts = 0;
    while (kills < 18 && Date.now() < end) {
      // Every other time into a refresh, where it hurts most.
      if (kills % 2 === 0) await Promise.race([refreshBegan.promise, sleep(4000)]);
      await sleep(300 * fraction());
      await hub.kill('SIGKILL');
      kills += 1;
      await hub.launch();
      const { appliances } = await ask(hub, (control) => control.status());
      doubts += appliances.filter(({ problem }) => problem?.code === 'answer_lost').length;
      // The portal keeps one token good beside the newest: a second loss in a row may cost a grant, by its own rules.
      await eventually(async () => (await states(hub)).every((state) => state === 'active'), 20);
    }
    const restarted = Date.now();
    await eventually(async () =>
      names.every((name) => load.handOuts.some((one) => one.appliance === name && one.asked > restarted)),
    );
    await load[Symbol.asyncDispose]();

    expect(kills).toBeGreaterThanOrEqual(8);
    expect(doubts, 'refreshes that were hit').toBeGreaterThan(0);
    expect(await states(hub)).toEqual(names.map(() => 'active'));
    expect(load.refused).toEqual([]);
    expect(load.refusals.filter(({ status }) => status !== 503)).toEqual([]);
    // A grant that is in doubt when its token ends waits for its one early replay, no longer.
    expect(load.refusals.length).toBeLessThan(0.05 * load.handOuts.length);
    expect(emulator.grants().filter(({ revoked }) => revoked)).toEqual([]);
    expect(emulator.observations).toMatchObject({ overlappingRefreshes: 0, codesRepeated: 0 });
    rememberIssued(emulator);
  });

  it('leaves an open pairing as it is: the same link, and both ways to the end', { timeout: 60_000 }, async () => {
    await using emulator = await startEmulator();
    await using hub = await HubProcess.start({ emulator });
    for (const name of ['by-redirect', 'by-poll']) await addAppliance(hub, name);
    const redirected = await beginPairing(hub, 'by-redirect');
    const polled = await beginPairing(hub, 'by-poll');
    for (let kill = 0; kill < 2; kill++) {
      await hub.kill('SIGKILL');
      await hub.launch();
    }
    expect(stateOf((await applianceStatus(hub, 'by-redirect')).authorize_url) === redirected).toBe(true);
    expect(stateOf((await applianceStatus(hub, 'by-poll')).authorize_url) === polled).toBe(true);

    const { location } = await emulator.login({ state: redirected, user: 'demo' });
    await emulator.login({ state: polled, user: 'demo' });
    expect(await visit(location)).toContain('is connected');
    await until(hub, 'by-poll', ({ state }) => state === 'active');
    expect(codeSends(emulator)).toEqual([1, 1]);
    rememberIssued(emulator);
  });

  it.each(['received', 'answering'] as const)(
    'in the middle of a code exchange (%s) makes a fresh link, and never sends the code again',
    { timeout: 60_000 },
    async (moment) => {
      await using portal = await holdingPortal(moment);
      const { emulator } = portal;
      await using hub = await HubProcess.start({ emulator });
      await addAppliance(hub, 'wallbox');
      const first = await beginPairing(hub, 'wallbox');
      const { location } = await emulator.login({ state: first, user: 'demo' });
      portal.hold(1);
      void visit(location).catch(() => undefined);
      await portal.held(1);
      await hub.kill('SIGKILL');
      portal.release();
      await hub.launch();

      const fresh = stateOf(
        (await until(hub, 'wallbox', (status) => status.authorize_url !== undefined)).authorize_url,
      );
      expect(fresh).not.toBe(first);
      // Somebody reloads the page that the login ended on.
      expect(await visit(location)).not.toContain('is connected');
      await sleep(6000);
      expect(codeSends(emulator)).toEqual([1]);
      expect(await applianceStatus(hub, 'wallbox')).toMatchObject({ state: 'pairing' });

      await logIn(emulator, fresh);
      await until(hub, 'wallbox', ({ state }) => state === 'active');
      expect(codeSends(emulator)).toEqual([1, 1]);
      expect(emulator.observations.codesRepeated).toBe(0);
      rememberIssued(emulator);
    },
  );

  it('in the middle of refreshes at a strict portal keeps the grants or says what was lost', {
    timeout: 90_000,
  }, async () => {
    const unsent = ['before-1', 'before-2'];
    const lost = ['after-1', 'after-2'];
    await using before = await holdingPortal('received');
    await using after = await holdingPortal('answering');
    for (const { portal, names, state } of [
      { portal: before, names: unsent, state: 'active' },
      { portal: after, names: lost, state: 'needs_pairing' },
    ]) {
      const { emulator } = portal;
      await using hub = await HubProcess.start({ emulator });
      const fleet = await pairFleet(hub, emulator, names);
      portal.hold(names.length);
      for (const name of names) startRefresh(hub, name);
      await portal.held(names.length);
      await hub.kill('SIGKILL');
      portal.release();
      await hub.launch();

      for (const name of names) {
        expect(await applianceStatus(hub, name)).toMatchObject({ state: 'retrying', problem: { code: 'answer_lost' } });
      }
      for (const [index, name] of names.entries()) {
        const status = await until(hub, name, (found) => found.state !== 'retrying');
        expect(status.state).toBe(state);
        if (state === 'needs_pairing') {
          expect(status.problem).toMatchObject({
            code: 'refused',
            message: expect.stringMatching(/answer was lost on \d/),
          });
        }
        // The token at hand lives, and is served.
        const answer = await hub.requestToken(fleet[index] ?? expect.fail());
        expect(answer).toMatchObject({ status: 200 });
        expect(await whoami(emulator, answer.body['access_token'])).toBe(200);
      }
      // Neither time nor a restart makes it send the dead token again.
      await hub.kill('SIGKILL');
      await hub.launch();
      await sleep(4000);
      const sends = refreshSends(emulator);
      expect(sends.map((token) => token.sends)).toEqual(names.map(() => 2));
      if (state === 'needs_pairing') {
        const name = names[0] ?? expect.fail();
        await logIn(emulator, await beginPairing(hub, name));
        await until(hub, name, (found) => found.state === 'active');
      }
      rememberIssued(emulator);
    }
  });
});

/** A portal whose token endpoint keeps requests waiting: before it does anything, or when it has and is to answer. */
async function holdingPortal(moment: 'received' | 'answering'): Promise<
  AsyncDisposable & {
    readonly emulator: Emulator;
    /** Holds the next `count` requests. */
    hold(count: number): void;
    /** Resolves when so many are held. */
    held(count: number): Promise<void>;
    release(): void;
  }
> {
  let toHold = 0;
  let holding = 0;
  let gate = Promise.withResolvers<void>();
  const emulator = await startEmulator({
    intercept: {
      async [moment]({ endpoint }: { endpoint: string }) {
        if (endpoint !== 'token' || toHold === 0) return;
        toHold -= 1;
        holding += 1;
        await gate.promise;
      },
    },
  });
  return {
    emulator,
    hold(count) {
      gate = Promise.withResolvers();
      toHold = count;
      holding = 0;
    },
    async held(count) {
      await eventually(async () => holding === count);
    },
    release: () => gate.resolve(),
    [Symbol.asyncDispose]: () => emulator.close(),
  };
}

async function states(hub: HubProcess): Promise<string[]> {
  return (await ask(hub, (control) => control.status())).appliances.map(({ state }) => state);
}

/** Mulberry32: the same numbers from 0 to 1 for the same seed. */
function randomFractions(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
