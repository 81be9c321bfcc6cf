import { isInOwnIpv4Subnet, type ReadInterfaces, rateLimitKeys } from '../../system/limits/rate-limit-keys.ts';
import { type RateLimit, type TokenBucket, TokenBuckets } from '../../system/limits/token-bucket.ts';

/** A source is locked for the first time after this many wrong codes. */
const FREE_ATTEMPTS = 5;
/** The first lock of a source, in ms; each further wrong code doubles it. */
const FIRST_LOCK_MS = 30_000;
const MAX_LOCK_MS = 3_600_000;
/** A source is forgotten after this long without a wrong code, in ms. */
const RECORD_LIFETIME_MS = 86_400_000;
/** A burst that continues is logged again after this long, in ms. */
const LOG_INTERVAL_MS = 3_600_000;
/** The most sources that are remembered; beyond that the oldest record is dropped. */
const MAX_SOURCES = 10_000;
/**
 * The limit of each {@link SourceGroup}: 50 wrong codes a second, 100 for both groups together. In a year this finds a
 * code of 51 bits with a chance of one in 1.3 million. The burst is larger than what all addresses of an IPv4 subnet
 * (/16) may send in their first hours, so that a device that takes each of these addresses does not use it up.
 */
export const GROUP_RATE_LIMIT = { burst: 1_000_000, interval: 20 };
const ALL_SOURCES = 'all devices';
/** Limits the log lines about sources: a device with many addresses must not fill the log. */
const LOG_RATE_LIMIT = { burst: 20, interval: 180_000 };

/**
 * The sources that share a limit: the devices of the hub's own IPv4 subnets, or all others. Any device can have as many
 * addresses as it likes in the second group, because one Router Advertisement makes it the IPv6 router. Wrong codes
 * there lock out no device of the first group.
 */
type SourceGroup = 'own IPv4 subnets' | 'elsewhere';

/** What a wrong code is counted against. */
export interface LoginSource {
  /** Identifies the source in the throttle. */
  readonly key: string;
  /** How the log names the source: an address, or a network in CIDR notation. */
  readonly address: string;
  /** Computed last, because it costs more than the rest; null for a source that needs no group limit. */
  readonly group: () => SourceGroup | null;
}

/**
 * The source for an IPv4 address, an IPv6 address on the hub's own networks, or the whole network (/64) of any other
 * IPv6 address.
 * @param address of the peer, as its socket reports it
 * @param interfaces of this machine
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

/**
 * The source for a browser that has signed in before, from any address.
 * @param id of the browser
 * @param address of the peer
 */
export function loginSourceForBrowser(id: string, address: string): LoginSource {
  return { key: `browser ${id}`, address, group: () => null };
}

/** The wrong codes of one source. */
interface AttemptRecord {
  failures: number;
  /** On the boot clock, in ms. */
  lockedUntil: number;
  lastFailureAt: number;
  loggedAt: number | null;
}

/**
 * A burst ends after this long without a further wrong code, in ms: longer than any lock, so that a device that keeps
 * trying does not end it.
 */
const BURST_TIMEOUT_MS = 2 * MAX_LOCK_MS;

/** Too many wrong codes, from one device or several. */
export interface FailedLoginBurst {
  /** The source of the last wrong codes. */
  readonly address: string;
  /** On the boot clock, in ms. */
  readonly startedAt: number;
  readonly lastFailureAt: number;
}

/** The consequence of a wrong code. */
export interface FailedLoginResult {
  /** For how long codes of this source are rejected unchecked, in ms; 0 if the next one is checked. */
  readonly lockedMs: number;
  /**
   * What to log: the source of the burst, and how many wrong codes it sent; null if that is already logged, or there is
   * no burst.
   */
  readonly logEntry: { readonly address: string; readonly count: number } | null;
}

/**
 * Counts recent wrong setup codes in bounded memory. Each further wrong code of a source makes its lock longer. A
 * device that changes its address for every code is limited only by its group. The group limit is generous, because
 * honest devices share it. Times are ms on the boot clock.
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

  /** For how long codes of this source are rejected unchecked, in ms; 0 if the next one is checked. */
  remainingLockMs({ key, group }: LoginSource, now: number): number {
    const lock = (this.#findRecord(key, now)?.lockedUntil ?? 0) - now;
    if (lock > 0) return lock;
    const tokens = this.#groupBucket(group(), now)?.tokens ?? 1;
    return tokens < 1 ? (1 - tokens) * this.#limit.interval : 0;
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
    let logEntry: FailedLoginResult['logEntry'] = null;
    const logBucket = this.#logBuckets.refill(ALL_SOURCES, LOG_RATE_LIMIT, now);
    if (over >= 0 && (record.loggedAt === null || now - record.loggedAt >= LOG_INTERVAL_MS) && logBucket.tokens >= 1) {
      logBucket.tokens -= 1;
      record.loggedAt = now;
      logEntry = { address: source.address, count: record.failures };
    }
    if (
      bucket !== null &&
      bucket.tokens < 1 &&
      (this.#groupLoggedAt === null || now - this.#groupLoggedAt >= LOG_INTERVAL_MS)
    ) {
      this.#groupLoggedAt = now;
      logEntry ??= { address: ALL_SOURCES, count: this.#limit.burst };
    }
    const isGroupExhausted = bucket !== null && bucket.tokens < 1;
    if (over >= 0 || isGroupExhausted) {
      const address = over >= 0 ? source.address : ALL_SOURCES;
      this.#burst = { address, startedAt: this.burst(now)?.startedAt ?? now, lastFailureAt: now };
    }
    return { lockedMs: this.remainingLockMs(source, now), logEntry };
  }

  /** The current burst; null if there is none. */
  burst(now: number): FailedLoginBurst | null {
    return this.#burst !== null && now - this.#burst.lastFailureAt < BURST_TIMEOUT_MS ? this.#burst : null;
  }

  /** The right code was entered: the earlier wrong ones of this source were typing errors. */
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
