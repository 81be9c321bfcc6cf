import { isInOwnIpv4Subnet, type ReadInterfaces, rateLimitKeys } from '../../system/limits/rate-limit-keys.ts';
import { type RateLimit, type TokenBucket, TokenBuckets } from '../../system/limits/token-bucket.ts';

/** So many wrong ones are nothing to one device. */
const FREE_ATTEMPTS = 5;
/** How long a device waits after the first one too many, in ms; each further one doubles it. */
const FIRST_LOCK_MS = 30_000;
const MAX_LOCK_MS = 3_600_000;
/** After so long without a wrong one nothing is known of a device any more, in ms. */
const RECORD_LIFETIME_MS = 86_400_000;
/** A burst that does not end is told again after so long, in ms. */
const LOG_INTERVAL_MS = 3_600_000;
/** Devices that are known; of more the one that was new first is forgotten. */
const MAX_SOURCES = 10_000;
/**
 * The limit of each {@link SourceGroup}: 50 wrong codes a second, 100 of both together. In a year that finds a code of 51 bits with a
 * chance of one in 1.3 million. The burst is more than all addresses of an IPv4 subnet (/16) may send in their first hours, so
 * that a neighbour who takes each of them does not use it up.
 */
export const GROUP_RATE_LIMIT = { burst: 1_000_000, interval: 20 };
const ALL_SOURCES = 'all devices';
/** Devices that the log is told of: one with many addresses must not fill it. */
const LOG_RATE_LIMIT = { burst: 20, interval: 180_000 };

/**
 * Who shares a limit: the devices of the hub's own IPv4 subnets, or all others. Those have as many addresses as they like, since
 * one Router Advertisement makes a neighbour the IPv6 router; what they do keeps no device of the first group out.
 */
type SourceGroup = 'own IPv4 subnets' | 'elsewhere';

/** Whose tries a code uses up. */
export interface LoginSource {
  /** What its wrong codes are counted by. */
  readonly key: string;
  /** What the log has it by: an address, or a network as CIDR has it. */
  readonly address: string;
  /** Asked for last, as it costs more than the rest; null for one whose own limit is enough. */
  readonly group: () => SourceGroup | null;
}

/**
 * A device: an IPv4 address, an IPv6 address on the hub's own networks, or the whole network (/64) of a distant one.
 * @param address of the peer, as its socket has it
 * @param interfaces this machine's
 */
export function loginSourceForAddress(address: string, interfaces?: ReadInterfaces): LoginSource {
  const device = rateLimitKeys(address, interfaces).at(-1)?.key ?? address;
  let group: SourceGroup | null = null;
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
export function loginSourceForBrowser(id: string, address: string): LoginSource {
  return { key: `browser ${id}`, address, group: () => null };
}

/** What was typed at a source. */
interface AttemptRecord {
  failures: number;
  /** On the boot clock, in ms. */
  lockedUntil: number;
  lastFailureAt: number;
  loggedAt: number | null;
}

/** After so long without one code too many a burst is over, in ms: longer than a device that goes on has to wait. */
const BURST_TIMEOUT_MS = 2 * MAX_LOCK_MS;

/** Too many wrong codes, from one device or several. */
export interface FailedLoginBurst {
  /** Where the last ones came from. */
  readonly address: string;
  /** On the boot clock, in ms. */
  readonly startedAt: number;
  readonly lastFailureAt: number;
}

/** What came of a wrong code. */
export interface FailedLoginResult {
  /** For how long no code is looked at from now on, in ms; 0 where the next one is. */
  readonly lockedMs: number;
  /** What the log is to be told: whose the burst is, and how many it were; null where it was told, or there is no burst. */
  readonly logEntry: { readonly address: string; readonly count: number } | null;
}

/**
 * The wrong setup codes that came lately, in bounded memory: who has typed too many waits longer with each, and whoever takes one
 * address after the other is held back by the limit of its group alone, which is wide, because others who are honest are in it.
 * Times are ms on the boot clock.
 */
export class LoginThrottle {
  readonly #limit: RateLimit;
  readonly #records = new Map<string, AttemptRecord>();
  readonly #groupBuckets = new TokenBuckets();
  readonly #logBuckets = new TokenBuckets();
  #groupLoggedAt: number | null = null;
  #burst: FailedLoginBurst | null = null;

  /** @param limit of each group */
  constructor(limit = GROUP_RATE_LIMIT) {
    this.#limit = limit;
  }

  /** For how long no code of this source is looked at, in ms; 0 where it is. */
  remainingLockMs({ key, group }: LoginSource, now: number): number {
    const lock = (this.#findRecord(key, now)?.lockedUntil ?? 0) - now;
    if (lock > 0) return lock;
    const left = this.#groupBucket(group(), now)?.tokens ?? 1;
    return left < 1 ? (1 - left) * this.#limit.interval : 0;
  }

  /** Counts a wrong code. */
  recordFailure(source: LoginSource, now: number): FailedLoginResult {
    const bucket = this.#groupBucket(source.group(), now);
    if (bucket !== null) bucket.tokens -= 1;
    const record = this.#getOrCreateRecord(source.key, now);
    record.failures += 1;
    record.lastFailureAt = now;
    const over = record.failures - FREE_ATTEMPTS;
    if (over >= 0) record.lockedUntil = now + Math.min(MAX_LOCK_MS, FIRST_LOCK_MS * 2 ** over);
    let tell: FailedLoginResult['logEntry'] = null;
    const lines = this.#logBuckets.refill(ALL_SOURCES, LOG_RATE_LIMIT, now);
    if (over >= 0 && (record.loggedAt === null || now - record.loggedAt >= LOG_INTERVAL_MS) && lines.tokens >= 1) {
      lines.tokens -= 1;
      record.loggedAt = now;
      tell = { address: source.address, count: record.failures };
    }
    if (
      bucket !== null &&
      bucket.tokens < 1 &&
      (this.#groupLoggedAt === null || now - this.#groupLoggedAt >= LOG_INTERVAL_MS)
    ) {
      this.#groupLoggedAt = now;
      tell ??= { address: ALL_SOURCES, count: this.#limit.burst };
    }
    const isAll = bucket !== null && bucket.tokens < 1;
    if (over >= 0 || isAll) {
      const address = over >= 0 ? source.address : ALL_SOURCES;
      this.#burst = { address, startedAt: this.burst(now)?.startedAt ?? now, lastFailureAt: now };
    }
    return { lockedMs: this.remainingLockMs(source, now), logEntry: tell };
  }

  /** The burst that is not over yet; null where there is none. */
  burst(now: number): FailedLoginBurst | null {
    return this.#burst !== null && now - this.#burst.lastFailureAt < BURST_TIMEOUT_MS ? this.#burst : null;
  }

  /** Somebody has typed the right one: what was typed there before was mistyped. */
  reset({ key }: LoginSource): void {
    this.#records.delete(key);
  }

  #groupBucket(group: SourceGroup | null, now: number): TokenBucket | null {
    return group === null ? null : this.#groupBuckets.refill(group, this.#limit, now);
  }

  #findRecord(key: string, now: number): AttemptRecord | undefined {
    const record = this.#records.get(key);
    return record !== undefined && now - record.lastFailureAt < RECORD_LIFETIME_MS ? record : undefined;
  }

  #getOrCreateRecord(key: string, now: number): AttemptRecord {
    const known = this.#findRecord(key, now);
    if (known !== undefined) return known;
    const record = { failures: 0, lockedUntil: 0, lastFailureAt: now, loggedAt: null };
    this.#records.delete(key);
    this.#records.set(key, record);
    const [first] = this.#records.keys();
    if (this.#records.size > MAX_SOURCES && first !== undefined) this.#records.delete(first);
    return record;
  }
}
