import { setTimeout as sleep } from 'node:timers/promises';
import type { Emulator } from '../../../src/emulator/index.ts';
import type { FleetMember, storeFleet } from '../../../test/reliability/stored-fleet.ts';
import { eventually, type HubProcess, type HubProcessOptions } from '../../../test/support/hub-process.ts';
import { SlowSyncs } from '../../../test/support/slow-syncs.ts';
import { type LoadResult, runLoad, tokenRequest } from '../load.ts';

/** Connections of the load. */
const CHAINS = 16;
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
      const chains = Array.from({ length: CHAINS }, (_, index) => {
        const member = fleet[index % fleet.length] as FleetMember;
        return { request: tokenRequest(hub.httpsPort, member), expected: '"access_token"' };
      });
      const loading = runLoad('latchkey', { port: hub.httpsPort, chains, rate, mayFail: true, warmUp, seconds });
      await Promise.race([loading, sleep(CONNECTING)]);
      syncs.setDuration(sync);
      const refreshing = new RepeatedRefreshes(hub, fleet, interval, 1000 * (warmUp + seconds));
      try {
        return { ...(await loading), refreshes: [...refreshing.durations] };
      } finally {
        syncs.setDuration(0);
        await refreshing.end();
      }
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

/** Refreshes each grant at regular intervals, one after another, for some time; all times in ms. */
class RepeatedRefreshes {
  readonly durations: number[] = [];
  readonly #hub: HubProcess;
  readonly #stop = new AbortController();
  readonly #all: Promise<unknown>;

  constructor(hub: HubProcess, fleet: readonly FleetMember[], interval: number, time: number) {
    this.#hub = hub;
    const now = performance.now();
    const each = fleet.map(({ name }, index) => {
      return this.#repeat(name, now + (index * interval) / fleet.length, interval, now + time);
    });
    this.#all = Promise.all(each);
  }

  /** Begins no further refresh, and waits for those under way. */
  async end(): Promise<void> {
    this.#stop.abort();
    await this.#all;
  }

  async #repeat(name: string, from: number, interval: number, to: number): Promise<void> {
    for (let due = from; due < to && (await this.#reaches(due)); due += interval) {
      const began = performance.now();
      const { state, problem } = await this.#hub.ask((control) => control.refresh(name));
      if (state !== 'active') throw new Error(`${name} is ${state}: ${problem?.message}`);
      this.durations.push(performance.now() - began);
    }
  }

  /** Waits until a time. @returns false if it was ended before */
  async #reaches(time: number): Promise<boolean> {
    const { signal } = this.#stop;
    await sleep(Math.max(0, time - performance.now()), undefined, { signal }).catch(() => undefined);
    return !signal.aborted;
  }
}
