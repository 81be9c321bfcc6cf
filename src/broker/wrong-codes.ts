import { type Bucket, Buckets } from '../system/allowances.ts';
import { sharesOf } from '../system/devices.ts';

/** So many wrong ones are nothing to one device. */
const FREE = 5;
/** How long a device waits after the first one too many, in ms; each further one doubles it. */
const FIRST_LOCK = 30_000;
const LONGEST_LOCK = 3_600_000;
/** After so long without a wrong one nothing is known of a device any more, in ms. */
const FORGOTTEN = 86_400_000;
/** A burst that does not end is told again after so long, in ms. */
const TOLD_AGAIN = 3_600_000;
/** Devices that are known; of more the one that was new first is forgotten. */
const MOST_DEVICES = 10_000;
/**
 * All devices together: a code of 51 bits is not found in a thousand years of it, and a neighbour who takes every address of an
 * IPv4 network (/24) does not use it up, as each of them waits longer and longer.
 */
const TOGETHER = { most: 2000, every: 500 };
const ALL = 'all devices';
/** Devices that the log is told of: one with many addresses must not fill it. */
const TELLING = { most: 20, every: 180_000 };

/** What a device, or a network, has typed. */
interface Record {
  wrong: number;
  /** On the boot clock, in ms. */
  lockedUntil: number;
  last: number;
  told: number | null;
}

/** What came of a wrong code. */
export interface Counted {
  /** For how long no code is looked at from now on, in ms; 0 where the next one is. */
  readonly locked: number;
  /** What the log is to be told: whose the burst is, and how many it were; null where it was told, or there is no burst. */
  readonly tell: { readonly address: string; readonly count: number } | null;
}

/**
 * The wrong setup codes that came lately, in bounded memory: who has typed too many waits longer with each. A device on a
 * network of the hub's own may take any IPv6 address of it; such a network waits as a whole, but no longer than at first, and
 * so do all devices together, because others who are honest live there. Times are ms on the boot clock.
 */
export class WrongCodes {
  readonly #records = new Map<string, Record>();
  readonly #together = new Buckets();
  readonly #lines = new Buckets();
  #toldOfAll: number | null = null;

  /** For how long no code of this device is looked at, in ms; 0 where it is. @param address of the peer, as its socket has it */
  lockedFor(address: string, now: number): number {
    const locks = sharesOf(address).map(({ of }) => (this.#known(of, now)?.lockedUntil ?? 0) - now);
    const { left } = this.#bucket(now);
    return Math.max(0, ...locks, left < 1 ? (1 - left) * TOGETHER.every : 0);
  }

  /** Counts a wrong code. */
  count(address: string, now: number): Counted {
    const bucket = this.#bucket(now);
    bucket.left -= 1;
    let tell: Counted['tell'] = null;
    for (const { of, times } of sharesOf(address)) {
      const record = this.#record(of, now);
      record.wrong += 1;
      record.last = now;
      const over = record.wrong - times * FREE;
      if (over < 0) continue;
      record.lockedUntil = now + (times > 1 ? FIRST_LOCK : Math.min(LONGEST_LOCK, FIRST_LOCK * 2 ** over));
      if (record.told !== null && now - record.told < TOLD_AGAIN) continue;
      const lines = this.#lines.filled(ALL, TELLING, now);
      if (lines.left < 1) continue;
      lines.left -= 1;
      record.told = now;
      tell = { address: of, count: record.wrong };
    }
    if (bucket.left < 1 && (this.#toldOfAll === null || now - this.#toldOfAll >= TOLD_AGAIN)) {
      this.#toldOfAll = now;
      tell ??= { address: ALL, count: TOGETHER.most };
    }
    return { locked: this.lockedFor(address, now), tell };
  }

  /** A device has typed the right one: what it typed before was mistyped. */
  forgive(address: string): void {
    for (const { of, times } of sharesOf(address)) if (times === 1) this.#records.delete(of);
  }

  #bucket(now: number): Bucket {
    return this.#together.filled(ALL, TOGETHER, now);
  }

  #known(of: string, now: number): Record | undefined {
    const record = this.#records.get(of);
    return record !== undefined && now - record.last < FORGOTTEN ? record : undefined;
  }

  #record(of: string, now: number): Record {
    const known = this.#known(of, now);
    if (known !== undefined) return known;
    const record = { wrong: 0, lockedUntil: 0, last: now, told: null };
    this.#records.delete(of);
    this.#records.set(of, record);
    const [first] = this.#records.keys();
    if (this.#records.size > MOST_DEVICES && first !== undefined) this.#records.delete(first);
    return record;
  }
}
