import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { startPortal } from '../support/portal.ts';
import { countRefreshSends, pairFleet } from './fleet.ts';
import { type ReceivedToken, TokenLoad } from './load.ts';

/** The lifetime of access tokens, in ms. */
const LIFETIME = 8000;
/** The portal's response time in ms. It shows whether a token's age counts from the time at which it was issued. */
const SLOW = 400;
/** The resolution of the boot clock, in ms. */
const STEP = 10;
/** The refreshes of each appliance that the test waits for, however slow the machine is. */
const REFRESHES = 1;

describe('ten appliances that request tokens twice a second', () => {
  it('ten appliances that request tokens twice a second always get valid ones, from sequential refreshes', async () => {
    let asked = 0;
    await using emulator = await startPortal({
      tokenLifetime: LIFETIME / 1000,
      intercept: {
        async answering({ endpoint }) {
          if (endpoint !== 'token') return;
          asked += 1;
          await sleep(SLOW);
        },
      },
    });
    await using hub = await HubProcess.start({ emulator, here: true });
    const names = Array.from({ length: 10 }, (_, index) => `appliance-${index}`);
    const fleet = await pairFleet(hub, emulator, names);

    const begun = performance.now();
    const load = await TokenLoad.start(hub, emulator, fleet, 500);
    const refreshesOf = (name: string) =>
      new Set(load.handOuts.filter(({ appliance }) => appliance === name).map(({ generation }) => generation)).size - 1;
    await eventually(async () => names.every((name) => refreshesOf(name) >= REFRESHES), 120);
    await load[Symbol.asyncDispose]();
    const lasted = performance.now() - begun;

    expect(load.unfounded).toEqual([]);
    expect(load.unanswered).toEqual([]);
    expect(load.untried).toEqual([]);
    expect(load.refused).toEqual([]);
    expect(load.handOuts.filter(promisesTooMuch)).toEqual([]);

    expect(emulator.observations).toEqual({
      refreshTokensRepeated: 0,
      codesRepeated: 0,
      overlappingRefreshes: 0,
      fastPolls: 0,
    });
    expect(countRefreshSends(emulator).filter((token) => token.sends !== 1)).toEqual([]);
    // Each pairing was one token request. A refresh may be in progress at this moment.
    await eventually(async () => countRefreshSends(emulator).length === asked - names.length);

    // No refresh comes before three quarters of a token's lifetime; part of the first lifetime had passed before.
    const most = Math.ceil(lasted / (0.75 * LIFETIME)) + 1;
    for (const name of names) expect(refreshesOf(name), `${name}: refreshes`).toBeLessThanOrEqual(most);
  });
});

/** Whether `expires_in` is more than the remaining lifetime at the time of the request. */
function promisesTooMuch({ asked, issuedAt, expiresIn }: ReceivedToken): boolean {
  return expiresIn * 1000 > issuedAt + LIFETIME - asked + STEP;
}
