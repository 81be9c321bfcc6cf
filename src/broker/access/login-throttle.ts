import { type Interfaces, isInOwnIpv4Subnet, rateLimitKeys } from '../../system/limits/rate-limit-keys.ts';
import { type RateLimit, type TokenBucket, TokenBuckets } from '../../system/limits/token-bucket.ts';

/** So many wrong ones are nothing to one device. */
const FREE = 5;
/** How long a device waits after the first one too many, in ms; each further one doubles it. */
const FIRST_LOCK = 30_000;
const MAX_LOCK_MS = 3_600_000;
/** After so long without a wrong one nothing is known of a device any more, in ms. */
const FORGOTTEN = 86_400_000;
/** A burst that does not end is told again after so long, in ms. */
const TOLD_AGAIN = 3_600_000;
/** Devices that are known; of more the one that was new first is forgotten. */
const MAX_DEVICES = 10_000;
/**
 * The limit of each {@link Group}: 50 wrong codes a second, 100 of both together. In a year that finds a code of 51 bits with a
 * chance of one in 1.3 million. The burst is more than all addresses of an IPv4 subnet (/16) may send in their first hours, so
 * that a neighbour who takes each of them does not use it up.
 */
export const GROUP_LIMIT = { burst: 1_000_000, interval: 20 };
const ALL = 'all devices';
/** Devices that the log is told of: one with many addresses must not fill it. */
const TELLING = { burst: 20, interval: 180_000 };

/**
 * Who shares a limit: the devices of the hub's own IPv4 subnets, or all others. Those have as many addresses as they like, since
 * one Router Advertisement makes a neighbour the IPv6 router; what they do keeps no device of the first group out.
 */
type Group = 'own IPv4 subnets' | 'elsewhere';

/** Whose tries a code uses up. */
export interface Source {
  /** What its wrong codes are counted by. */
  readonly key: string;
  /** What the log has it by: an address, or a network as CIDR has it. */
  readonly address: string;
  /** Asked for last, as it costs more than the rest; null for one whose own limit is enough. */
  readonly group: () => Group | null;
}

/**
 * A device: an IPv4 address, an IPv6 address on the hub's own networks, or the whole network (/64) of a distant one.
 * @param address of the peer, as its socket has it
 * @param interfaces this machine's
 */
export function sourceOfAddress(address: string, interfaces?: Interfaces): Source {
  const device = rateLimitKeys(address, interfaces).at(-1)?.key ?? address;
  let group: Group | null = null;
  return {
    key: device,
    address: device,
    group() {
      group ??= isInOwnIpv4Subnet(address, interfaces) ? 'own IPv4 subnets' : 'elsewhere';
      return group;
    },
  };
}

/** A browser that has signed in before, wherever it is. @param id of it @param address of the peer */
export function sourceOfBrowser(id: string, address: string): Source {
  return { key: `browser ${id}`, address, group: () => null };
}

/** What was typed at a source. */
interface Record {
  wrong: number;
  /** On the boot clock, in ms. */
  lockedUntil: number;
  last: number;
  told: number | null;
}

/** After so long without one code too many a burst is over, in ms: longer than a device that goes on has to wait. */
const BURST_OVER = 2 * MAX_LOCK_MS;

/** Too many wrong codes, from one device or several. */
export interface Burst {
  /** Where the last ones came from. */
  readonly address: string;
  /** On the boot clock, in ms. */
  readonly begun: number;
  readonly last: number;
}

/** What came of a wrong code. */
export interface Counted {
  /** For how long no code is looked at from now on, in ms; 0 where the next one is. */
  readonly locked: number;
  /** What the log is to be told: whose the burst is, and how many it were; null where it was told, or there is no burst. */
  readonly tell: { readonly address: string; readonly count: number } | null;
}

/**
 * The wrong setup codes that came lately, in bounded memory: who has typed too many waits longer with each, and whoever takes one
 * address after the other is held back by the limit of its group alone, which is wide, because others who are honest are in it.
 * Times are ms on the boot clock.
 */
export class LoginThrottle {
  readonly #limit: RateLimit;
  readonly #records = new Map<string, Record>();
  readonly #groups = new TokenBuckets();
  readonly #lines = new TokenBuckets();
  #toldOfAll: number | null = null;
  #burst: Burst | null = null;

  /** @param limit of each group */
  constructor(limit = GROUP_LIMIT) {
    this.#limit = limit;
  }

  /** For how long no code of this source is looked at, in ms; 0 where it is. */
  lockedFor({ key, group }: Source, now: number): number {
    const lock = (this.#known(key, now)?.lockedUntil ?? 0) - now;
    if (lock > 0) return lock;
    const left = this.#bucket(group(), now)?.left ?? 1;
    return left < 1 ? (1 - left) * this.#limit.interval : 0;
  }

  /** Counts a wrong code. */
  count(source: Source, now: number): Counted {
    const bucket = this.#bucket(source.group(), now);
    if (bucket !== null) bucket.left -= 1;
    const record = this.#record(source.key, now);
    record.wrong += 1;
    record.last = now;
    const over = record.wrong - FREE;
    if (over >= 0) record.lockedUntil = now + Math.min(MAX_LOCK_MS, FIRST_LOCK * 2 ** over);
    let tell: Counted['tell'] = null;
    const lines = this.#lines.filled(ALL, TELLING, now);
    if (over >= 0 && (record.told === null || now - record.told >= TOLD_AGAIN) && lines.left >= 1) {
      lines.left -= 1;
      record.told = now;
      tell = { address: source.address, count: record.wrong };
    }
    if (bucket !== null && bucket.left < 1 && (this.#toldOfAll === null || now - this.#toldOfAll >= TOLD_AGAIN)) {
      this.#toldOfAll = now;
      tell ??= { address: ALL, count: this.#limit.burst };
    }
    const isAll = bucket !== null && bucket.left < 1;
    if (over >= 0 || isAll) {
      const address = over >= 0 ? source.address : ALL;
      this.#burst = { address, begun: this.burst(now)?.begun ?? now, last: now };
    }
    return { locked: this.lockedFor(source, now), tell };
  }

  /** The burst that is not over yet; null where there is none. */
  burst(now: number): Burst | null {
    return this.#burst !== null && now - this.#burst.last < BURST_OVER ? this.#burst : null;
  }

  /** Somebody has typed the right one: what was typed there before was mistyped. */
  reset({ key }: Source): void {
    this.#records.delete(key);
  }

  #bucket(group: Group | null, now: number): TokenBucket | null {
    return group === null ? null : this.#groups.filled(group, this.#limit, now);
  }

  #known(key: string, now: number): Record | undefined {
    const record = this.#records.get(key);
    return record !== undefined && now - record.last < FORGOTTEN ? record : undefined;
  }

  #record(key: string, now: number): Record {
    const known = this.#known(key, now);
    if (known !== undefined) return known;
    const record = { wrong: 0, lockedUntil: 0, last: now, told: null };
    this.#records.delete(key);
    this.#records.set(key, record);
    const [first] = this.#records.keys();
    if (this.#records.size > MAX_DEVICES && first !== undefined) this.#records.delete(first);
    return record;
  }
}
