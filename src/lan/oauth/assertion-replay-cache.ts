import { sha256 } from '../../system/secret-hash.ts';

/** Assertions of one appliance that are remembered: more than ten a second for as long as one is good. */
const MAX_PER_APPLIANCE = 1000;
/** Of all appliances together. */
const MAX_TOTAL = 50_000;
/** What every appliance may have remembered all the same, so that none takes the place of another. */
const RESERVED_PER_APPLIANCE = 10;

/** What became of an assertion that is to be remembered. */
export type ReplayCheck = 'first' | 'again' | 'full';

/** The assertions that were used, each for as long as it would be good (RFC 7523, 3: `jti`). */
export class AssertionReplayCache {
  /** For each appliance's id the hashes of its `jti`s, and when each may be forgotten. */
  readonly #expiries = new Map<string, Map<string, number>>();
  #count = 0;

  /**
   * @param until when it is no longer good, by the same clock as `now`, in ms
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
