import type { Appliance } from '../../core/appliances/appliance.ts';
import { messageOf } from '../../core/failure.ts';
import { timeLeft } from '../../core/pairings/pairing.ts';
import type { BrokerStore, Environment } from '../ports.ts';
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
interface WaitingAppliance {
  readonly appliance: Appliance;
  /** Where it registered from. */
  readonly from: string;
  /** Milliseconds until its approval times out. */
  readonly remainingMs: number;
}

/** An appliance that is not approved within this time is removed, in ms. */
const APPROVAL_TIMEOUT = 24 * 3_600_000;
/** A failed removal is retried after this long, in ms. */
const RETRY_INTERVAL = 60_000;
/** The scheduler's key for the timeout. */
const EXPIRY_TASK = 'approval timeout';
/** The most appliances that may wait, in all and from one address. */
const MAX_WAITING = 300;
const MAX_WAITING_PER_ADDRESS = 5;

/** The appliances that wait for an installer's approval; they are removed if they are not approved in time. */
export class PendingApprovals {
  readonly #context: PendingApprovalsContext;
  readonly #deduplicator: LogDeduplicator;

  constructor(context: PendingApprovalsContext) {
    this.#context = context;
    this.#deduplicator = new LogDeduplicator(context.environment.clock);
  }

  /** The waiting appliances, and how long each may still wait. */
  list(): WaitingAppliance[] {
    const now = this.#context.environment.clock.now();
    return this.#context.appliances.list().flatMap((appliance) => {
      if (appliance.waiting === null) return [];
      const { since: begun, from } = appliance.waiting;
      return [{ appliance, from, remainingMs: timeLeft({ begun, lifetime: APPROVAL_TIMEOUT }, now) }];
    });
  }

  /**
   * For how many ms no further appliance may wait; 0 if one may.
   * @param address see {@link Appliance.waiting}
   */
  fullForMs(address: string): number {
    const waiting = this.list();
    const same = waiting.filter(({ from }) => from === address);
    const isAddressFull = same.length >= MAX_WAITING_PER_ADDRESS;
    if (!isAddressFull && waiting.length < MAX_WAITING) return 0;
    return Math.max(1, Math.min(...(isAddressFull ? same : waiting).map(({ remainingMs }) => remainingMs)));
  }

  /**
   * Schedules the next timeout; call it whenever a wait has begun or ended. Waits from an earlier boot are measured by
   * the wall clock, which may be set, so they are checked at least once an hour.
   */
  scheduleExpiry(minDelay = 0): void {
    const left = this.list().map((each) => each.remainingMs);
    const next = Math.max(minDelay, Math.min(3_600_000, ...left));
    const at = this.#context.environment.clock.now().uptime + next;
    if (left.length === 0) this.#context.scheduler.cancel(EXPIRY_TASK);
    else this.#context.scheduler.plan(EXPIRY_TASK, at, () => void this.#removeExpired());
  }

  async #removeExpired(): Promise<void> {
    const { log } = this.#context.environment;
    // On a site another hub may remove them: if it dies, this one does.
    if (!(await this.#mayRemove())) return this.scheduleExpiry(RETRY_INTERVAL);
    let minDelay = 0;
    for (const { appliance, remainingMs: left } of this.list()) {
      // Approved while another one was removed.
      if (left > 0 || this.#context.appliances.byId(appliance.id)?.waiting === null) continue;
      try {
        await this.#context.appliances.remove(appliance);
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
    return this.#context.store.holdLease('cleanup').catch(() => false);
  }
}
