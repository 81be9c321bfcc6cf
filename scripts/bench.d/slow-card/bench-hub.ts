import { setTimeout as sleep } from 'node:timers/promises';
import type { Emulator } from '../../../src/emulator/index.ts';
import type { storeFleet } from '../../../test/reliability/stored-fleet.ts';
import { eventually, type HubProcess, type HubProcessOptions } from '../../../test/support/hub-process.ts';
import { SlowSyncs } from '../../../test/support/slow-syncs.ts';
import { type LoadResult, runLoad, tokenRequest } from '../load.ts';

/** The time in which the load connects before syncs take longer, in ms. */
const CONNECTING = 1000;
/** The grants, each of one appliance. */
const NAMES = ['wallbox', 'heat-pump', 'inverter', 'meter', 'boiler', 'battery'];

/** A load on a hub with a slow card. */
interface SlowCardLoad {
  /** How much longer each sync takes, in ms. */
  readonly sync: number;
  /** Token requests per second. */
  readonly rate: number;
  /** The time between two refreshes of a grant, in ms. */
  readonly interval: number;
  /** In s, as for `runLoad`. */
  readonly warmUp: number;
  readonly seconds: number;
}

interface SlowCardResult extends Omit<LoadResult, 'rate' | 'busy'> {
  /** The durations of the refreshes that succeeded meanwhile, in ms. */
  readonly refreshes: readonly number[];
}

/** A hub whose syncs can be slowed down. */
export interface SlowCardBench extends AsyncDisposable {
  /** Sends token requests at regular intervals, while every grant is refreshed again and again. */
  load(load: SlowCardLoad): Promise<SlowCardResult>;
}

/**
 * Starts a hub with six grants whose tokens outlive the run, so that no token request has to wait for a refresh.
 * @param fill writes the grants, with the code of the measured revision
 * @param folder for the file that sets the duration of syncs
 */
export async function startSlowCardBench(
  prepare: (options: HubProcessOptions) => Promise<HubProcess>,
  emulator: Emulator,
  fill: typeof storeFleet,
  folder: string,
): Promise<SlowCardBench> {
  await using parts = new AsyncDisposableStack();
  const syncs = new SlowSyncs(folder);
  const hub = parts.use(await prepare({ emulator, env: syncs.env }));
  const fleet = await fill(hub, emulator, NAMES, 0);
  await hub.launch();
  await eventually(async () => hub.events('snapshot_written').length > 0);
  const running = parts.move();
  return {
    async load({ sync, rate, interval, warmUp, seconds }) {
      // Three connections of each appliance.
      const chains = [...fleet, ...fleet, ...fleet].map((member) => {
        return { request: tokenRequest(hub.httpsPort, member), expected: '"access_token"' };
      });
      const durations: number[] = [];
      const job = { port: hub.httpsPort, chains, rate, mayFail: true, warmUp, seconds };
      const loading = runLoad('latchkey', job)
        .then((load) => ({ ...load, refreshes: [...durations] }))
        .finally(() => syncs.setDuration(0));
      await Promise.race([loading, sleep(CONNECTING)]);
      syncs.setDuration(sync);
      const now = performance.now();
      const to = now + 1000 * (warmUp + seconds);
      const refreshing = fleet.map(({ name }, index) => {
        const from = now + (index * interval) / fleet.length;
        return refreshRepeatedly(hub, name, { from, interval, to }, durations);
      });
      const [load] = await Promise.all([loading, ...refreshing]);
      return load;
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

/**
 * Refreshes a grant at regular intervals; all times in ms.
 * @param from the time of the first refresh
 * @param to no refresh begins after this time
 * @param durations gets the duration of each refresh when it ends
 */
async function refreshRepeatedly(
  hub: HubProcess,
  name: string,
  { from, interval, to }: { readonly from: number; readonly interval: number; readonly to: number },
  durations: number[],
): Promise<void> {
  for (let due = from; due < to; due += interval) {
    await sleep(Math.max(0, due - performance.now()));
    const began = performance.now();
    const { state, problem } = await hub.ask((control) => control.refresh(name));
    if (state !== 'active') throw new Error(`${name} is ${state}: ${problem?.message}`);
    durations.push(performance.now() - began);
  }
}
