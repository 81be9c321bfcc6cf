import { isIPv4 } from 'node:net';
import type { Appliance, RegistrantAddress } from '../../core/appliances/appliance.ts';
import { messageOf } from '../../core/failure.ts';
import { timeLeft } from '../../core/pairings/pairing.ts';
import { type Admission, admit } from '../../system/limits/fair-share.ts';
import type { Environment } from '../environment.ts';
import { LogDeduplicator } from '../reports/log-deduplicator.ts';
import type { Scheduler } from '../time/scheduler.ts';
import type { Appliances } from './appliances.ts';

/** One that waits for an installer's approval. */
export interface WaitingAppliance {
  readonly appliance: Appliance;
  /** Milliseconds for which it still may. */
  readonly remainingMs: number;
}

/** How long one waits before it is taken for a stranger and removed, in ms. */
const APPROVAL_TIMEOUT = 24 * 3_600_000;
/** What could not be written is tried again after so long, in ms. */
const RETRY_INTERVAL = 60_000;
/** The scheduler's name for the end of a wait. */
const EXPIRY_TASK = 'the end of a wait for approval';
/** Appliances that may wait at a time over each of IPv4 and IPv6: more than a home network (/24) has IPv4 addresses. */
const MAX_PER_PROTOCOL = 300;
/** The same, of one device. */
const MAX_PER_DEVICE = 5;
/** The same, of one network interface, or of one IPv6 network: a device may take any address there. */
const MAX_PER_NETWORK = 15;

/** Appliances that wait for an installer's approval: they are removed when nobody has approved them in time. */
export class PendingApprovals {
  readonly #appliances: Appliances;
  readonly #scheduler: Scheduler;
  readonly #environment: Environment;
  readonly #deduplicator: LogDeduplicator;

  constructor(appliances: Appliances, scheduler: Scheduler, environment: Environment) {
    this.#appliances = appliances;
    this.#scheduler = scheduler;
    this.#environment = environment;
    this.#deduplicator = new LogDeduplicator(environment.clock);
  }

  /** Those that wait, and for how long they still may. */
  list(): WaitingAppliance[] {
    const now = this.#environment.clock.now();
    return this.#appliances.list().flatMap((appliance) => {
      const { waitingSince: begun } = appliance;
      if (begun === null) return [];
      return [{ appliance, remainingMs: timeLeft({ begun, lifetime: APPROVAL_TIMEOUT }, now) }];
    });
  }

  /**
   * Plans the next end of a wait; to be called whenever one has begun or ended. Across boots the wall clock measures,
   * which may be set: so it is looked at once an hour at least.
   */
  scheduleExpiry(least = 0): void {
    const left = this.list().map((each) => each.remainingMs);
    const next = Math.max(least, Math.min(3_600_000, ...left));
    const at = this.#environment.clock.now().uptime + next;
    if (left.length === 0) this.#scheduler.cancel(EXPIRY_TASK);
    else this.#scheduler.plan(EXPIRY_TASK, at, () => void this.#removeExpired());
  }

  async #removeExpired(): Promise<void> {
    const { log } = this.#environment;
    let least = 0;
    for (const { appliance, remainingMs: left } of this.list()) {
      // Approved while another one was removed.
      if (left > 0 || this.#appliances.byId(appliance.id)?.waitingSince === null) continue;
      try {
        await this.#appliances.remove(appliance);
        log.warn('appliance_removed', { appliance: appliance.name, reason: 'approval_timeout' });
      } catch (error) {
        least = RETRY_INTERVAL;
        const told = this.#deduplicator.recordOccurrence(appliance.id, appliance.id);
        const level = told === null ? 'debug' : 'error';
        log.at(level, 'appliance_removal_failed', { appliance: appliance.name, error: messageOf(error) });
      }
    }
    this.scheduleExpiry(least);
  }
}

/**
 * Whether one more may wait for approval. If there are too many, the oldest of the device that has most gives way to a device
 * that has less. So each IPv4 address that has none waiting gets one, and over IPv6 each link-layer address, whatever number
 * of IPv6 addresses another device takes; if link-layer addresses are not known, networks are compared, and then the addresses of one.
 */
export function admitRegistrant(
  from: RegistrantAddress,
  waiting: readonly WaitingAppliance[],
): Admission<WaitingAppliance> {
  const [protocol = '', ...shares] = quotaKeys(from);
  const quotas = shares.map((key, index) => ({
    key,
    limit: index === shares.length - 1 ? MAX_PER_DEVICE : MAX_PER_NETWORK,
  }));
  const oldestFirst = waiting.toSorted((one, other) => one.remainingMs - other.remainingMs);
  const holders = oldestFirst.map((each) => ({ ...each, keys: quotaKeys(each.appliance.registeredFrom) }));
  return admit([{ key: protocol, limit: MAX_PER_PROTOCOL }, ...quotas], holders);
}

/** Those of whom the store does not say where they registered from count to nobody. */
function quotaKeys(from: RegistrantAddress | undefined): readonly string[] {
  return from === undefined ? [] : [isIPv4(from.address) ? 'IPv4' : 'IPv6', ...from.shares];
}
