import { isIPv4 } from 'node:net';
import type { Appliance, RegistrantAddress } from '../../core/appliance.ts';
import { isLinkShare } from '../../system/link-addresses.ts';

/** One that waits for an installer's approval. */
export interface Waiting {
  readonly appliance: Appliance;
  /** Milliseconds for which it still may. */
  readonly left: number;
}

/** Appliances that wait for approval at one time; beyond that each IPv4 address and each neighbour has one place. */
const MAX_WAITING = 20;
/** IPv4 addresses that have a place at one time, more than a home network (/24) has; so many link-layer addresses, too. */
const MAX_ADDRESSES = 300;
/** The same, of one device. */
const MAX_OF_ONE_DEVICE = 5;
/** The same, of one network where a device may take any address. */
const MAX_OF_ONE_NETWORK = 15;
/** Those of whom the store does not say where they registered from count as of one device. */
const UNKNOWN: readonly string[] = ['unknown'];

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
 * A place for one more that waits for approval. No device gets more than a few, no IPv6 network gets all, and when all are
 * taken the device that has most gives one up to one that has less. One device may have every IPv4 address of its network
 * but those of the others: so each IPv4 address that has no place gets one, and an only place is never taken from it. Of IPv6
 * a device may have any number of addresses: there, it is the link-layer address that gets one; where that is not known, the
 * network that has most gives one up.
 */
export function findPlace(waiting: readonly Waiting[], from: RegistrantAddress): Place {
  const { shares } = from;
  const holders = holdersOf(waiting);
  const counts = countsOf(shares, holders);
  const device = holders.filter((holder) => holder.shares.at(-1) === shares.at(-1));
  if (device.length >= MAX_OF_ONE_DEVICE) return { kind: 'full', until: leastLeft(device) };
  const network = holders.filter((holder) => holder.shares[0] === shares[0]);
  if (network.length >= MAX_OF_ONE_NETWORK) return insteadOf(network, from, counts);
  if (holders.length < MAX_WAITING) return { kind: 'free' };
  const place = insteadOf(holders, from, counts);
  const kind = [isIPv4, isLinkShare].find((isOfKind) => isOfKind(shares[0] ?? ''));
  if (place.kind !== 'full' || network.length > 0 || kind === undefined) return place;
  const others = new Set(holders.map((holder) => holder.shares[0] ?? '').filter(kind));
  return others.size < MAX_ADDRESSES ? { kind: 'free' } : place;
}

function holdersOf(waiting: readonly Waiting[]): Holder[] {
  const all = waiting.map((each) => ({ waiting: each, shares: each.appliance.registeredFrom?.shares ?? UNKNOWN }));
  return all.map((one) => ({ ...one, counts: countsOf(one.shares, all) }));
}

/** Of those that have most, by the widest share first, the oldest gives way. */
function insteadOf(holders: readonly Holder[], from: RegistrantAddress, counts: readonly number[]): Place {
  const [first] = holders
    .filter((holder) => givesWay(holder, from, counts))
    .sort((a, b) => compare(b.counts, a.counts) || a.waiting.left - b.waiting.left);
  if (first === undefined) return { kind: 'full', until: leastLeft(holders) };
  return { kind: 'instead_of', appliance: first.waiting.appliance };
}

/**
 * Who has one more than the other gains nothing but the other's place. IPv6 networks are compared, and within one network its
 * devices; an only place is not taken for the sake of somebody's second one, nor for an IPv4 address, which gets one anyway.
 */
function givesWay(holder: Holder, { address, shares }: RegistrantAddress, counts: readonly number[]): boolean {
  const hasMore = (at: number) => (holder.counts.at(at) ?? 0) >= (counts.at(at) ?? 0) + 2;
  const differs = shares.findIndex((share, index) => share !== holder.shares[index]);
  if (isIPv4(address)) return hasMore(-1);
  return differs !== -1 && hasMore(differs) && (counts.at(-1) === 0 || hasMore(-1));
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
