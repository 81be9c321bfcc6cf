import { sha256 } from '../../system/secret-hash.ts';

/** The most assertions of one appliance in the cache: more than ten a second for as long as one is valid. */
const MAX_PER_APPLIANCE = 1000;
/** The most assertions of all appliances together. */
const MAX_TOTAL = 50_000;
/** Each appliance may have this many in any case, so that one appliance can't block the others. */
const RESERVED_PER_APPLIANCE = 10;

/** The result of recording an assertion: its first use, a replay, or no room to record it. */
type ReplayCheck = 'first' | 'again' | 'full';

/** The assertions that were used, each until it expires (RFC 7523, 3: `jti`). */
export class AssertionReplayCache {
  /** By appliance id: the hashes of its `jti`s, and when each may be deleted. */
  readonly #expiries = new Map<string, Map<string, number>>();
  #count = 0;

  /**
   * Records the use of an assertion.
   * @param until when it expires, on the same clock as `now`, in ms
   */
  recordUse(appliance: string, jti: string, until: number, now: number): ReplayCheck {
    const own = this.#expiries.get(appliance) ?? new Map<string, number>();
    const key = sha256(jti);
    const known = own.get(key);
    if (known !== undefined && known > now) return 'again';
    const isFull = () =>
      own.size >= MAX_PER_APPLIANCE || (this.#count >= MAX_TOTAL && own.size >= RESERVED_PER_APPLIANCE);
    if (isFull()) this.#deleteExpired(now);
    if (isFull()) return 'full';
    if (!own.has(key)) this.#count += 1;
    own.set(key, until);
    this.#expiries.set(appliance, own);
    return 'first';
  }

  #deleteExpired(now: number): void {
    for (const [appliance, own] of this.#expiries) {
      for (const [key, until] of own) {
        if (until > now) continue;
        own.delete(key);
        this.#count -= 1;
      }
      if (own.size === 0) this.#expiries.delete(appliance);
    }
  }
}
