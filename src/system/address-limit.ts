import type { Clock } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import { type Allowance, type Bucket, Buckets } from './allowances.ts';
import { sharesOf } from './devices.ts';

/** What a limit needs of its surroundings. */
export interface LimitSurroundings {
  readonly clock: Clock;
  readonly log: Log;
}

/** Whether something may happen once more; else in how many whole seconds it may. */
export type Allowed = { readonly ok: true } | { readonly ok: false; readonly retryAfter: number };

/** A burst that does not end is told again after so long, in ms. */
const TOLD_AGAIN = 3_600_000;

/**
 * How often one device may do something that nobody should do often. Where it is too much the log is told once a burst,
 * with the address; a burst has ended when the whole allowance is there again.
 */
export class AddressLimit {
  readonly #event: string;
  readonly #allowance: Allowance;
  readonly #surroundings: LimitSurroundings;
  readonly #buckets = new Buckets();
  /** When the log was told of a burst that has not ended. */
  readonly #told = new WeakMap<Bucket, number>();

  /** @param event what the log says, such as `too many failed authentications` */
  constructor(event: string, allowance: Allowance, surroundings: LimitSurroundings) {
    this.#event = event;
    this.#allowance = allowance;
    this.#surroundings = surroundings;
  }

  /** Counts that it happens. @param address of the peer, as the socket has it */
  take(address: string): Allowed {
    return this.#allowed(address, 1);
  }

  /** Counts nothing: whether {@link take} would allow it. */
  look(address: string): Allowed {
    return this.#allowed(address, 0);
  }

  #allowed(address: string, count: 0 | 1): Allowed {
    const { clock } = this.#surroundings;
    const now = clock.now().uptime;
    const buckets: Bucket[] = [];
    // The widest first: whoever has used that up is not remembered by one address after the other.
    for (const { of, times } of sharesOf(address)) {
      const allowance = { most: times * this.#allowance.most, every: this.#allowance.every / times };
      const bucket = this.#buckets.filled(of, allowance, now);
      if (bucket.left >= allowance.most) {
        this.#told.delete(bucket);
        bucket.refused = 0;
      }
      if (bucket.left < 1) {
        this.#tell(bucket, of, allowance, now);
        return { ok: false, retryAfter: Math.max(1, Math.ceil(((1 - bucket.left) * allowance.every) / 1000)) };
      }
      buckets.push(bucket);
    }
    for (const bucket of buckets) bucket.left -= count;
    return { ok: true };
  }

  #tell(bucket: Bucket, address: string, { most }: Allowance, now: number): void {
    bucket.refused += 1;
    const told = this.#told.get(bucket);
    if (told !== undefined && now - told < TOLD_AGAIN) return;
    const count = bucket.refused + (told === undefined ? most : 0);
    this.#surroundings.log.warn(this.#event, { address, count });
    this.#told.set(bucket, now);
    bucket.refused = 0;
  }
}
