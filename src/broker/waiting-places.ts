import type { Appliance } from '../core/appliance.ts';

/** One that waits for an installer's approval. */
export interface Waiting {
  readonly appliance: Appliance;
  /** Milliseconds for which it still may. */
  readonly left: number;
}

/** Appliances that wait for approval at one time. */
const MOST_WAITING = 20;
/** The same, of one device. */
const MOST_OF_ONE_DEVICE = 5;

/** Whether there is a place for one more, and which one gives way to it; `until` those before may wait, in ms. */
export type Place =
  | { readonly kind: 'free' }
  | { readonly kind: 'instead_of'; readonly appliance: Appliance }
  | { readonly kind: 'full'; readonly until: number };

/**
 * The places of those that wait for approval. No device gets more than a few, and when all are taken the device that has
 * most gives one up to a device that has less: so nobody keeps an honest appliance out by taking them all.
 */
export class WaitingPlaces {
  /** The device that each came from, by its id; of this run only: those of an earlier one count as of one device. */
  readonly #devices = new Map<string, string>();

  take(appliance: string, device: string): void {
    this.#devices.set(appliance, device);
  }

  /** A place for one more of this device. */
  find(waiting: readonly Waiting[], device: string): Place {
    this.#dropAllBut(waiting);
    const byDevice = Map.groupBy(waiting, ({ appliance }) => this.#devices.get(appliance.id) ?? null);
    const own = byDevice.get(device) ?? [];
    if (own.length >= MOST_OF_ONE_DEVICE) return { kind: 'full', until: leastLeft(own) };
    if (waiting.length < MOST_WAITING) return { kind: 'free' };
    const most = Math.max(...[...byDevice.values()].map(({ length }) => length));
    // Who has one more than the other gains nothing but the other's place.
    if (most < own.length + 2) return { kind: 'full', until: leastLeft(waiting) };
    const [oldest] = [...byDevice.values()]
      .filter(({ length }) => length === most)
      .flat()
      .sort((a, b) => a.left - b.left);
    return oldest === undefined ? { kind: 'free' } : { kind: 'instead_of', appliance: oldest.appliance };
  }

  #dropAllBut(waiting: readonly Waiting[]): void {
    const ids = new Set(waiting.map(({ appliance }) => appliance.id));
    for (const id of this.#devices.keys()) if (!ids.has(id)) this.#devices.delete(id);
  }
}

function leastLeft(waiting: readonly Waiting[]): number {
  return Math.min(...waiting.map(({ left }) => left));
}
