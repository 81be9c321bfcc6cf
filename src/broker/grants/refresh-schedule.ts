import type { Instant } from '../../core/clock.ts';
import { type Grant, remainingLifetime, tokenAge } from '../../core/grants/grant.ts';
import { nextAttemptAt, onDemandAttemptAt, type RefreshHealth } from '../../core/grants/refresh-health.ts';
import type { RetryContext, RetryLostAnswer } from '../../core/grants/retry-delays.ts';
import type { Environment } from '../environment.ts';
import type { ReferenceClock } from '../time/reference-clock.ts';

/** A grant, as far as its next refresh depends on it. */
export interface ScheduledGrant {
  readonly grant: Grant;
  readonly health: RefreshHealth;
  /** When the last refresh was begun because the cloud had refused the token at hand, on the boot clock in ms. */
  readonly lastForcedRefresh: number | null;
  /** Before this the hub does not refresh it on its own, on the boot clock in ms: see `throttledUntil` of the core. */
  readonly throttledUntil: number;
}

/**
 * When grants are refreshed, and how long their tokens live. Who looks at thousands of them gives `now`: to ask the boot clock for
 * each takes longer than all the rest.
 */
export class RefreshSchedule {
  readonly #environment: Pick<Environment, 'clock' | 'random'>;
  readonly #referenceClock: ReferenceClock;
  readonly #retryLostAnswerOf: (appliance: string) => RetryLostAnswer | undefined;
  readonly #jitterOffset: (appliance: string) => number;
  /** When this run of the hub began, on the boot clock in ms. */
  readonly startedAt: number;

  /** @param jitterOffset from 0 to 1, for an appliance always the same: see `ScheduleInput` */
  constructor(
    environment: Pick<Environment, 'clock' | 'random'>,
    referenceClock: ReferenceClock,
    retryLostAnswerOf: (appliance: string) => RetryLostAnswer | undefined,
    jitterOffset: (appliance: string) => number,
  ) {
    this.#environment = environment;
    this.#referenceClock = referenceClock;
    this.#retryLostAnswerOf = retryLostAnswerOf;
    this.#jitterOffset = jitterOffset;
    this.startedAt = environment.clock.now().uptime;
  }

  /** When the grant will be refreshed next, on the boot clock in ms; null for never. */
  dueAt({ grant, health, lastForcedRefresh, throttledUntil }: ScheduledGrant, now?: Instant): number | null {
    const jitterOffset = this.#jitterOffset(grant.appliance);
    const input = {
      ...this.retryContext(grant.appliance, now),
      startedAt: this.startedAt,
      jitterOffset,
      lastForcedRefresh,
    };
    const due = nextAttemptAt(grant, health, input);
    return due === null ? null : Math.max(due, throttledUntil);
  }

  isDue(managed: ScheduledGrant): boolean {
    return this.#hasPassed(this.dueAt(managed));
  }

  /** When an appliance that waits for a token may have it refreshed, on the boot clock in ms; null for never. */
  onDemandAt({ grant, health, lastForcedRefresh }: ScheduledGrant): number | null {
    return onDemandAttemptAt(grant, health, { ...this.retryContext(grant.appliance), lastForcedRefresh });
  }

  /** Whether an appliance that waits may have it refreshed now: against a backoff that runs, that would storm the portal. */
  mayRefreshOnDemand(managed: ScheduledGrant): boolean {
    return this.#hasPassed(this.onDemandAt(managed));
  }

  /** Milliseconds that the token at hand lives; null where that can't be known yet. */
  remaining({ grant }: ScheduledGrant, now = this.#environment.clock.now()): number | null {
    return remainingLifetime(grant, now, this.#referenceClock.confirmed);
  }

  /** Milliseconds since the token at hand was obtained; null where that can't be known yet. */
  age({ grant }: ScheduledGrant, now = this.#environment.clock.now()): number | null {
    return tokenAge(grant, now, this.#referenceClock.confirmed);
  }

  /** What the next attempt of an appliance's grant is worked out from now. */
  retryContext(appliance: string, now = this.#environment.clock.now()): RetryContext {
    const { random } = this.#environment;
    const retryLostAnswer = this.#retryLostAnswerOf(appliance) ?? 'late';
    return { now, confirmed: this.#referenceClock.confirmed, retryLostAnswer, fraction: random.fraction() };
  }

  #hasPassed(at: number | null): boolean {
    return at !== null && at <= this.#environment.clock.now().uptime;
  }
}
