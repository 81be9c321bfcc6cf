/** A key that holders count for, such as a device or its network, and the limit of its holders. */
export interface Quota {
  readonly key: string;
  readonly limit: number;
}

/** Something that counts for quotas, such as a connection. */
export interface QuotaHolder {
  /** The keys that it counts for, the widest first. */
  readonly keys: readonly string[];
}

/** Whether a newcomer is admitted; `instead_of`: if `holder` gives way. */
export type Admission<H> =
  | { readonly kind: 'free' }
  | { readonly kind: 'instead_of'; readonly holder: H }
  /** @property quotaHolders all holders of the quota that is full */
  | { readonly kind: 'full'; readonly quotaHolders: readonly H[] };

/**
 * Shares quotas fairly. If a quota of the newcomer is full, one of its holders gives way: one whose keys have the most
 * holders, comparing the widest keys first, and only if its key still has more holders afterwards than the newcomer's
 * had before. So a newcomer without holders is admitted while any other has two, and a key's only holder stays unless
 * its network has more.
 * @param newcomer the quotas of the newcomer, the widest first
 * @param holders all holders; among equal ones the first gives way
 */
export function admit<H extends QuotaHolder>(newcomer: readonly Quota[], holders: readonly H[]): Admission<H> {
  const counts = new Map<string, number>();
  for (const { keys } of holders) for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
  const count = (key = '') => counts.get(key) ?? 0;

  // The narrowest full quota: a holder that gives way there also frees a place in the wider ones.
  const full = newcomer.findLast(({ key, limit }) => count(key) >= limit);
  if (full === undefined) return { kind: 'free' };
  const quotaHolders = holders.filter(({ keys }) => keys.includes(full.key));
  const hasMore = ({ keys }: QuotaHolder) => {
    const level = newcomer.findIndex(({ key }, index) => key !== keys[index]);
    return level !== -1 && count(keys[level]) >= count(newcomer[level]?.key) + 2;
  };
  const [candidate] = quotaHolders
    .filter(hasMore)
    .map((holder) => ({ holder, counts: holder.keys.map(count) }))
    .toSorted((a, b) => compareCounts(b.counts, a.counts));
  return candidate === undefined ? { kind: 'full', quotaHolders } : { kind: 'instead_of', holder: candidate.holder };
}

/** Compares the counts of the widest keys first. */
function compareCounts(a: readonly number[], b: readonly number[]): number {
  const level = a.findIndex((held, index) => held !== b[index]);
  return level === -1 ? 0 : (a[level] ?? 0) - (b[level] ?? 0);
}
