/** What holders are counted by, such as a device or its network, and how many of them there may be. */
export interface Quota {
  readonly key: string;
  readonly limit: number;
}

/** One that holds a place, such as a connection. */
export interface QuotaHolder {
  /** What it is counted by, the widest first. */
  readonly keys: readonly string[];
}

/** Whether there is a place for a newcomer. */
export type Admission<H> =
  | { readonly kind: 'free' }
  | { readonly kind: 'instead_of'; readonly holder: H }
  /** @param among all that count to the quota that is used up */
  | { readonly kind: 'full'; readonly quotaHolders: readonly H[] };

/**
 * Shares places fairly. If a quota is used up, a holder that counts to it gives way: one of those that have most, by their
 * widest keys first, and only if they keep more than the newcomer has had. So whoever has none gets one as long as anybody
 * has two, and an only place is kept unless it counts to a network that has more.
 * @param newcomer its quotas, the widest first
 * @param holders of those that have equally many, the first one gives way
 */
export function admit<H extends QuotaHolder>(newcomer: readonly Quota[], holders: readonly H[]): Admission<H> {
  const counts = new Map<string, number>();
  for (const { keys } of holders) for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
  const count = (key = '') => counts.get(key) ?? 0;

  // The narrowest one: whoever gives way there frees a place of the wider ones, too.
  const full = newcomer.findLast(({ key, limit }) => count(key) >= limit);
  if (full === undefined) return { kind: 'free' };
  const among = holders.filter(({ keys }) => keys.includes(full.key));
  const hasMore = ({ keys }: QuotaHolder) => {
    const level = newcomer.findIndex(({ key }, index) => key !== keys[index]);
    return level !== -1 && count(keys[level]) >= count(newcomer[level]?.key) + 2;
  };
  const [holder] = among
    .filter(hasMore)
    .map((each) => ({ each, held: each.keys.map(count) }))
    .toSorted((one, other) => compareCounts(other.held, one.held))
    .map(({ each }) => each);
  return holder === undefined ? { kind: 'full', quotaHolders: among } : { kind: 'instead_of', holder };
}

/** Compares the widest ones first. */
function compareCounts(some: readonly number[], others: readonly number[]): number {
  const level = some.findIndex((held, index) => held !== others[index]);
  return level === -1 ? 0 : (some[level] ?? 0) - (others[level] ?? 0);
}
