import { isIPv4 } from 'node:net';
import type { Appliance, RegistrantAddress } from '../../core/appliances/appliance.ts';
import { messageOf } from '../../core/failure.ts';
import { timeLeft } from '../../core/pairings/pairing.ts';
import { type Admission, admit } from '../../system/limits/fair-share.ts';
import type { Environment } from '../environment.ts';
import type { BrokerStore } from '../ports.ts';
import { LogDeduplicator } from '../reports/log-deduplicator.ts';
import type { Scheduler } from '../time/scheduler.ts';
import type { Appliances } from './appliances.ts';

/** What {@link PendingApprovals} works with. */
interface PendingApprovalsContext {
  readonly appliances: Appliances;
  readonly store: Pick<BrokerStore, 'holdLease'>;
  readonly scheduler: Scheduler;
  readonly environment: Environment;
}

/** An appliance that waits for an installer's approval. */
export interface WaitingAppliance {
  readonly appliance: Appliance;
  /** Where it registered from. */
  readonly from: RegistrantAddress;
  /** Milliseconds until its approval times out. */
  readonly remainingMs: number;
}

/** An appliance that is not approved within this time is removed, in ms. */
const APPROVAL_TIMEOUT = 24 * 3_600_000;
/** A failed removal is retried after this long, in ms. */
const RETRY_INTERVAL = 60_000;
/** The scheduler's key for the timeout. */
const EXPIRY_TASK = 'approval timeout';
/** The most appliances that may wait over each of IPv4 and IPv6: more than a home network (/24) has IPv4 addresses. */
const MAX_PER_PROTOCOL = 300;
/** The most that may wait from one device. */
const MAX_PER_DEVICE = 5;
/** The most that may wait from one network interface, or from one IPv6 network, where a device may use any address. */
const MAX_PER_NETWORK = 15;

/** The appliances that wait for an installer's approval; they are removed if they are not approved in time. */
export class PendingApprovals {
  readonly #appliances: Appliances;
  readonly #store: Pick<BrokerStore, 'holdLease'>;
  readonly #scheduler: Scheduler;
  readonly #environment: Environment;
  readonly #deduplicator: LogDeduplicator;

  constructor({ appliances, store, scheduler, environment }: PendingApprovalsContext) {
    this.#appliances = appliances;
    this.#store = store;
    this.#scheduler = scheduler;
    this.#environment = environment;
    this.#deduplicator = new LogDeduplicator(environment.clock);
  }

  /** The waiting appliances, and how long each may still wait. */
  list(): WaitingAppliance[] {
    const now = this.#environment.clock.now();
    return this.#appliances.list().flatMap((appliance) => {
      if (appliance.waiting === null) return [];
      const { since: begun, from } = appliance.waiting;
      return [{ appliance, from, remainingMs: timeLeft({ begun, lifetime: APPROVAL_TIMEOUT }, now) }];
    });
  }

  /**
   * Schedules the next timeout; call it whenever a wait has begun or ended. Waits from an earlier boot are measured by
   * the wall clock, which may be set, so they are checked at least once an hour.
   */
  scheduleExpiry(minDelay = 0): void {
    const left = this.list().map((each) => each.remainingMs);
    const next = Math.max(minDelay, Math.min(3_600_000, ...left));
    const at = this.#environment.clock.now().uptime + next;
    if (left.length === 0) this.#scheduler.cancel(EXPIRY_TASK);
    else this.#scheduler.plan(EXPIRY_TASK, at, () => void this.#removeExpired());
  }

  async #removeExpired(): Promise<void> {
    const { log } = this.#environment;
    // On a site another hub may remove them: if it dies, this one does.
    if (!(await this.#mayRemove())) return this.scheduleExpiry(RETRY_INTERVAL);
    let minDelay = 0;
    for (const { appliance, remainingMs: left } of this.list()) {
      // Approved while another one was removed.
      if (left > 0 || this.#appliances.byId(appliance.id)?.waiting === null) continue;
      try {
        await this.#appliances.remove(appliance);
        log.warn('appliance_removed', { appliance: appliance.name, reason: 'approval_timeout' });
      } catch (error) {
        minDelay = RETRY_INTERVAL;
        const summary = this.#deduplicator.recordOccurrence(appliance.id, appliance.id);
        const level = summary === null ? 'debug' : 'error';
        log.at(level, 'appliance_removal_failed', { appliance: appliance.name, error: messageOf(error) });
      }
    }
    this.scheduleExpiry(minDelay);
  }

  #mayRemove(): Promise<boolean> {
    return this.#store.holdLease('cleanup').catch(() => false);
  }
}

/**
 * Whether one more appliance may wait for approval. If there are too many, the device with the most waiting appliances
 * loses its oldest one to a device with fewer. So every IPv4 address without a waiting appliance gets one, and over
 * IPv6 every link-layer address, however many IPv6 addresses another device takes. If link-layer addresses are unknown,
 * networks are compared, and then the addresses within a network.
 */
export function admitRegistrant(
  from: RegistrantAddress,
  waiting: readonly WaitingAppliance[],
): Admission<WaitingAppliance> {
  const [protocol = '', ...quotaNames] = quotaKeys(from);
  const quotas = quotaNames.map((key, index) => ({
    key,
    limit: index === quotaNames.length - 1 ? MAX_PER_DEVICE : MAX_PER_NETWORK,
  }));
  const oldestFirst = waiting.toSorted((one, other) => one.remainingMs - other.remainingMs);
  const holders = oldestFirst.map((each) => ({ ...each, keys: quotaKeys(each.from) }));
  return admit([{ key: protocol, limit: MAX_PER_PROTOCOL }, ...quotas], holders);
}

/** The quotas that an appliance counts against. */
function quotaKeys({ address, shares }: RegistrantAddress): readonly string[] {
  return [isIPv4(address) ? 'IPv4' : 'IPv6', ...shares];
}
