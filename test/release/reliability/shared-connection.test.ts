import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { countRefreshSends, startRefresh } from '../../reliability/fleet.ts';
import { TokenLoad, tokenExpiry } from '../../reliability/load.ts';
import { eventually, HubProcess } from '../../support/hub-process.ts';
import { startPortal } from '../../support/portal.ts';

const CONNECTION = 'heating';
const APPLIANCES = ['thermostat', 'dashboard', 'boiler'];
/** Milliseconds between two requests of an appliance: 50 requests a second altogether. */
const REQUEST_INTERVAL = 60;
const REFRESHES = 60;
/** The hub is killed after so many refreshes. */
const KILL_EVERY = 30;

it('one grant serves three appliances through sixty refreshes and two kills, one refresh at a time', async () => {
  // The portal repeats its answer to a refresh that was interrupted, so no kill may cost the grant.
  await using emulator = await startPortal({
    tokenLifetime: 60,
    refreshGraceTime: 3600,
    intercept: { answering: async ({ endpoint }) => void (endpoint === 'token' && (await sleep(20))) },
  });
  await using hub = await HubProcess.start({ emulator });
  await hub.ask((control) => control.request('addConnection', { name: CONNECTION, scope: 'Monitoring' }));
  const fleet = [];
  for (const name of APPLIANCES) fleet.push(await hub.addAppliance(name, null, null, CONNECTION));
  await hub.pair(CONNECTION, emulator);

  const load = await TokenLoad.start(hub, emulator, fleet, REQUEST_INTERVAL);
  let kills = 0;
  for (let done = 0; done < REFRESHES; done++) {
    if (done % KILL_EVERY === KILL_EVERY - 1) {
      startRefresh(hub, CONNECTION);
      await sleep(15);
      await hub.kill('SIGKILL');
      kills += 1;
      await hub.launch();
      await eventually(async () => (await hub.connection(CONNECTION)).state === 'active', 60);
    } else await hub.ask((control) => control.request('refresh', { name: CONNECTION }));
  }
  await load[Symbol.asyncDispose]();

  expect(kills).toBe(2);
  const ids = new Set(load.handOuts.map(({ grant }) => grant));
  expect(ids.size, 'grants at the portal that tokens came from').toBe(1);
  expect(emulator.grants().filter(({ revoked }) => !revoked)).toHaveLength(1);
  expect(load.refused).toEqual([]);
  expect(load.untried).toEqual([]);
  expect(load.refusals, 'answers without a token').toEqual([]);
  expect(emulator.observations.overlappingRefreshes).toBe(0);
  const generations = load.handOuts.map(({ generation }) => generation);
  expect(Math.max(...generations)).toBeGreaterThanOrEqual(REFRESHES - kills);
  // After a refresh all of them get the same token: no appliance is given an older one than another had before it asked.
  for (const name of APPLIANCES) expect(load.handOuts.some(({ appliance }) => appliance === name)).toBe(true);
  const stale = load.handOuts.filter((token) =>
    load.handOuts.some((other) => other.answered < token.asked && other.generation > token.generation),
  );
  expect(stale).toEqual([]);
  expect(load.handOuts.every((token) => tokenExpiry(token) > token.answered)).toBe(true);
  // A refresh token is sent twice only if a kill interrupted its refresh.
  const repeated = countRefreshSends(emulator).filter(({ sends }) => sends > 1);
  expect(repeated.length).toBeLessThanOrEqual(kills);
});
