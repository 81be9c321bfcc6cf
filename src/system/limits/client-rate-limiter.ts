import { BlockList, isIPv6 } from 'node:net';
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';
import type { Clock } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import { ipv6Bytes, unmapIpv4 } from '../addresses.ts';
import { monotonicNow } from '../clock.ts';

/** The dependencies of a {@link ClientRateLimiter}. */
export interface RateLimiterContext {
  readonly clock: Clock;
  readonly log: Log;
}

/** The events that a {@link ClientRateLimiter} may log. */
type RateLimitEvent =
  | 'too_many_failed_authentications'
  | 'too_many_registrations'
  | 'too_many_unknown_user_codes'
  | 'too_many_wrong_setup_codes';

/** Whether an action is allowed; if not, after how many whole seconds it is. */
type RateLimitResult = { readonly ok: true } | { readonly ok: false; readonly retryAfter: number };

/** How often one address may send a wrong code or secret. */
export const WRONG_CODE_LIMIT: RateLimit = { burst: 10, interval: 6000 };

/** Interval at which a burst that does not end is logged again, in ms. */
const LOG_INTERVAL = 3_600_000;

/**
 * Limits how often one address may do something, such as failing to authenticate. Exceeding the limit is logged once
 * per burst; a burst has ended when the bucket is full again.
 */
export class ClientRateLimiter {
  readonly #event: RateLimitEvent;
  readonly #limit: RateLimit;
  readonly #context: RateLimiterContext;
  readonly #buckets = new TokenBuckets();
  /** When the current burst of a bucket was logged, on the boot clock in ms. */
  readonly #logged = new WeakMap<TokenBucket, number>();

  /** @param event to log if the limit is exceeded */
  constructor(event: RateLimitEvent, limit: RateLimit, context: RateLimiterContext) {
    this.#event = event;
    this.#limit = limit;
    this.#context = context;
  }

  /** Counts one action, if it is allowed. @param address of the peer, as reported by its socket */
  take(address: string): RateLimitResult {
    return this.#check(address, 1);
  }

  /** Whether {@link take} would allow an action. Counts nothing. */
  peek(address: string): RateLimitResult {
    return this.#check(address, 0);
  }

  #check(address: string, count: 0 | 1): RateLimitResult {
    const now = this.#context.clock.now().uptime;
    const { burst, interval } = this.#limit;
    const key = rateLimitKey(address);
    const bucket = this.#buckets.refill(key, this.#limit, now);
    if (bucket.tokens >= burst) {
      this.#logged.delete(bucket);
      bucket.rejected = 0;
    }
    if (bucket.tokens < 1) {
      this.#logRejection(bucket, key, now);
      return { ok: false, retryAfter: Math.max(1, Math.ceil(((1 - bucket.tokens) * interval) / 1000)) };
    }
    bucket.tokens -= count;
    return { ok: true };
  }

  #logRejection(bucket: TokenBucket, address: string, now: number): void {
    bucket.rejected += 1;
    const logged = this.#logged.get(bucket);
    if (logged !== undefined && now - logged < LOG_INTERVAL) return;
    const count = bucket.rejected + (logged === undefined ? this.#limit.burst : 0);
    this.#context.log.warn(this.#event, { address, count });
    this.#logged.set(bucket, now);
    bucket.rejected = 0;
  }
}

/** A rate limit: `burst` times at once, and once more every `interval` ms. */
export interface RateLimit {
  readonly burst: number;
  readonly interval: number;
}

/** Largest number of buckets; a further one replaces the one that was created first. */
const MAX_KEYS = 20_000;

/** The state of a rate limit. */
interface TokenBucket {
  tokens: number;
  /** In ms, on the clock of the caller. */
  refilledAt: number;
  /** How many times the limit was exceeded; the caller counts and resets it. */
  rejected: number;
}

/** Token buckets by key, in bounded memory. */
export class TokenBuckets {
  readonly #buckets = new Map<string, TokenBucket>();

  /**
   * The bucket of this key, refilled for the time since its last refill.
   * @param now milliseconds on any monotonic clock
   */
  refill(key: string, { burst, interval }: RateLimit, now: number): TokenBucket {
    const existing = this.#buckets.get(key);
    if (existing === undefined) {
      const bucket = { tokens: burst, refilledAt: now, rejected: 0 };
      this.#buckets.set(key, bucket);
      const [first] = this.#buckets.keys();
      if (this.#buckets.size > MAX_KEYS && first !== undefined) this.#buckets.delete(first);
      return bucket;
    }
    existing.tokens = Math.min(burst, existing.tokens + (now - existing.refilledAt) / interval);
    existing.refilledAt = now;
    return existing;
  }
}

/** Reads the machine's interfaces, as `networkInterfaces` of `node:os` does. */
type ReadInterfaces = () => Readonly<Record<string, readonly NetworkInterfaceInfo[] | undefined>>;

/** Prefix length of a network in which a device can use any address (RFC 4291, 2.5.1). */
const IPV6_PREFIX_LENGTH = 64;

/** For how long what the machine has said of its networks counts, in ms. */
const NETWORKS_MAX_AGE = 5000;

/** This machine's networks as they were last read, on the boot clock in ms. */
let own: { readonly networks: BlockList; readonly readAt: number } | null = null;

/**
 * The key by which requests and connections of a peer are counted: its address, or its /64 network for an IPv6 address
 * outside this machine's own networks.
 * @param address of the peer, as reported by its socket
 * @param interfaces this machine's; left out: as they were a moment ago
 */
export function rateLimitKey(address: string, interfaces?: ReadInterfaces): string {
  const unmapped = unmapIpv4(address);
  const plain = unmapped.replace(/%.*$/, '');
  if (!isIPv6(plain)) return unmapped;
  const networks = interfaces === undefined ? ownNetworks() : networksOf(interfaces);
  if (networks.check(plain, 'ipv6')) return unmapped;
  const bytes = ipv6Bytes(plain);
  const groups = [0, 2, 4, 6].map((offset) => bytes.readUInt16BE(offset).toString(16));
  return `${groups.join(':')}::/${IPV6_PREFIX_LENGTH}`;
}

function ownNetworks(): BlockList {
  const now = monotonicNow();
  if (own === null || now - own.readAt >= NETWORKS_MAX_AGE)
    own = { networks: networksOf(networkInterfaces), readAt: now };
  return own.networks;
}

function networksOf(interfaces: ReadInterfaces): BlockList {
  const networks = new BlockList();
  networks.addSubnet('fe80::', 10, 'ipv6');
  for (const { family, address } of addressesOf(interfaces)) {
    // Always /64: a Router Advertisement could announce a wider network, and an address from DHCPv6 has a /128.
    if (family === 'IPv6') networks.addSubnet(address, IPV6_PREFIX_LENGTH, 'ipv6');
  }
  return networks;
}

/** None if the process has no file left to open, which reading them needs. */
function addressesOf(interfaces: ReadInterfaces): NetworkInterfaceInfo[] {
  try {
    return Object.values(interfaces()).flatMap((entries) => entries ?? []);
  } catch {
    return [];
  }
}
