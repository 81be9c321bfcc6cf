import { sha256 } from '../../system/secret-hash.ts';

/** The most assertions of one appliance in the cache: more than ten a second for as long as one is valid. */
const MAX_PER_APPLIANCE = 1000;

/** The result of recording an assertion: its first use, a replay, or no room to record it. */
type ReplayCheck = 'first' | 'again' | 'full';

/** The assertions that were used, each until it expires (RFC 7523, 3: `jti`). */
export class AssertionReplayCache {
  /** By appliance id: the hashes of its `jti`s, and when each may be deleted. */
  readonly #expiries = new Map<string, Map<string, number>>();

  /**
   * Records the use of an assertion.
   * @param until when it expires, on the same clock as `now`, in ms
   */
  recordUse(appliance: string, jti: string, until: number, now: number): ReplayCheck {
    const own = this.#expiries.get(appliance) ?? new Map<string, number>();
    this.#expiries.set(appliance, own);
    for (const [key, expiry] of own) if (expiry <= now) own.delete(key);
    const key = sha256(jti);
    if (own.has(key)) return 'again';
    if (own.size >= MAX_PER_APPLIANCE) return 'full';
    own.set(key, until);
    return 'first';
  }
}
