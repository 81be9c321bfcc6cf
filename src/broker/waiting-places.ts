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
/** The same, of one network where a device may take any address. */
const MOST_OF_ONE_NETWORK = 15;
/** Those of an earlier run count as of one device. */
const EARLIER: readonly string[] = ['an earlier run'];

/** Whether there is a place for one more, and which one gives way to it; `until` those before may wait, in ms. */
export type Place =
  | { readonly kind: 'free' }
  | { readonly kind: 'instead_of'; readonly appliance: Appliance }
  | { readonly kind: 'full'; readonly until: number };

/** One that waits. */
interface Holder {
  readonly waiting: Waiting;
  /** Whom it counts to, the widest first. */
  readonly shares: readonly string[];
  /** How many places each of its shares has. */
  readonly counts: readonly number[];
}

/**
 * The places of those that wait for approval. No device gets more than a few, no network gets all, and when all are taken
 * the network or device that has most gives one up to one that has less: so nobody keeps an honest appliance out by taking
 * them all.
 */
export class WaitingPlaces {
  /** Whom each counts to, the widest first, by its id; of this run only. */
  readonly #shares = new Map<string, readonly string[]>();

  /** @param shares whom the appliance counts to, the widest first; the last is its device */
  take(appliance: string, shares: readonly string[]): void {
    this.#shares.set(appliance, shares);
  }

  /** A place for one more. @param shares whom it counts to, as {@link take} has them */
  find(waiting: readonly Waiting[], shares: readonly string[]): Place {
    this.#dropAllBut(waiting);
    const holders = this.#holders(waiting);
    const counts = countsOf(shares, holders);
    const device = holders.filter((holder) => holder.shares.at(-1) === shares.at(-1));
    if (device.length >= MOST_OF_ONE_DEVICE) return { kind: 'full', until: leastLeft(device) };
    const network = holders.filter((holder) => holder.shares[0] === shares[0]);
    if (network.length >= MOST_OF_ONE_NETWORK) return insteadOf(network, shares, counts);
    return holders.length < MOST_WAITING ? { kind: 'free' } : insteadOf(holders, shares, counts);
  }

  #holders(waiting: readonly Waiting[]): Holder[] {
    const all = waiting.map((each) => ({ waiting: each, shares: this.#shares.get(each.appliance.id) ?? EARLIER }));
    return all.map((one) => ({ ...one, counts: countsOf(one.shares, all) }));
  }

  #dropAllBut(waiting: readonly Waiting[]): void {
    const ids = new Set(waiting.map(({ appliance }) => appliance.id));
    for (const id of this.#shares.keys()) if (!ids.has(id)) this.#shares.delete(id);
  }
}

/** Of those that have most, by the widest share first, the oldest gives way. */
function insteadOf(holders: readonly Holder[], shares: readonly string[], counts: readonly number[]): Place {
  const [first] = holders
    .filter((holder) => givesWay(holder, shares, counts))
    .sort((a, b) => compare(b.counts, a.counts) || a.waiting.left - b.waiting.left);
  if (first === undefined) return { kind: 'full', until: leastLeft(holders) };
  return { kind: 'instead_of', appliance: first.waiting.appliance };
}

/** Who has one more than the other gains nothing but the other's place; within one network its devices are compared. */
function givesWay(holder: Holder, shares: readonly string[], counts: readonly number[]): boolean {
  const at = shares.findIndex((share, index) => share !== holder.shares[index]);
  return at !== -1 && (holder.counts[at] ?? 0) >= (counts[at] ?? 0) + 2;
}

function countsOf(shares: readonly string[], all: readonly Pick<Holder, 'shares'>[]): number[] {
  return shares.map((share) => all.filter((one) => one.shares.includes(share)).length);
}

function compare(some: readonly number[], others: readonly number[]): number {
  return (some[0] ?? 0) - (others[0] ?? 0) || (some.at(-1) ?? 0) - (others.at(-1) ?? 0);
}

function leastLeft(holders: readonly Holder[]): number {
  return Math.min(...holders.map(({ waiting }) => waiting.left));
}
