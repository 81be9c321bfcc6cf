import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { startEmulator } from '../../src/emulator/index.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { pairFleet, refreshSends, rememberIssued } from './fleet.ts';
import { type HandOut, Load } from './load.ts';

/** Of an access token, in ms. */
const LIFETIME = 15_000;
/** How long the load goes on, in ms. */
const MINUTE = 60_000;
/** A portal that takes this long to answer (ms) shows whether a token's age is counted from when it was issued. */
const SLOW = 400;
/** The boot clock counts in steps of 10 ms. */
const STEP = 10;
/** What a machine that has other work may be late with a timer, or with a request that was sent, in ms. */
const LATE = 2000;

describe('ten appliances that ask twice a second for a minute', () => {
  it('get tokens that the portal takes, from refreshes that come in time, one after the other', {
    timeout: 120_000,
  }, async () => {
    let asked = 0;
    await using emulator = await startEmulator({
      tokenLifetime: LIFETIME / 1000,
      intercept: {
        async answering({ endpoint }) {
          if (endpoint !== 'token') return;
          asked += 1;
          await sleep(SLOW);
        },
      },
    });
    await using hub = await HubProcess.start({ emulator });
    const names = Array.from({ length: 10 }, (_, index) => `appliance-${index}`);
    const fleet = await pairFleet(hub, emulator, names);
    const pairings = asked;

    const load = await Load.start(hub, emulator, fleet, 500);
    await sleep(MINUTE);
    await load[Symbol.asyncDispose]();

    expect(load.handOuts.length).toBeGreaterThan(0.9 * 10 * 2 * (MINUTE / 1000));
    expect(load.refusals).toEqual([]);
    expect(load.unanswered).toBe(0);
    expect(load.refused).toEqual([]);
    expect(load.handOuts.filter(promisesTooMuch)).toEqual([]);
    expect(load.handOuts.filter(isTooOld)).toEqual([]);

    expect(emulator.observations).toEqual({ refreshTokensRepeated: 0, codesRepeated: 0, overlappingRefreshes: 0 });
    expect(refreshSends(emulator).filter((token) => token.sends !== 1)).toEqual([]);
    // One may be between its coming and its answer just now.
    await eventually(async () => refreshSends(emulator).length === asked - pairings);

    for (const name of names) {
      const ages = agesAtRefresh(load.handOuts.filter(({ appliance }) => appliance === name));
      expect(ages.length, `${name}: refreshes`).toBeGreaterThanOrEqual(4);
      expect(ages.length, `${name}: refreshes`).toBeLessThanOrEqual(6);
      for (const age of ages) {
        expect(age, `${name}: age at its refresh`).toBeGreaterThan(0.75 * LIFETIME - LATE);
        expect(age, `${name}: age at its refresh`).toBeLessThan(0.85 * LIFETIME + LATE);
      }
    }
    rememberIssued(emulator);
  });
});

/** `expires_in` is more than what was left when the appliance asked. */
function promisesTooMuch({ asked, issuedAt, expiresIn }: HandOut): boolean {
  return expiresIn * 1000 > issuedAt + LIFETIME - asked + STEP;
}

/** Less than a tenth was left when the appliance asked. */
function isTooOld({ asked, issuedAt }: HandOut): boolean {
  return issuedAt + LIFETIME - asked < LIFETIME / 10;
}

/** How old each token was when the next one was issued, in ms. */
function agesAtRefresh(handOuts: readonly HandOut[]): number[] {
  const issued = new Map(handOuts.map(({ generation, issuedAt }) => [generation, issuedAt]));
  return [...issued].flatMap(([generation, issuedAt]) => {
    const next = issued.get(generation + 1);
    return next === undefined ? [] : [next - issuedAt];
  });
}
