import type { Instant } from '../clock.ts';
import type { Problem } from '../reports/problem.ts';
import type { Grant } from './grant.ts';
import { lostAnswerHoldOff, type RetryContext } from './retry-delays.ts';
import { forcedRefreshAt, nextRefreshAt, onDemandRefreshAt, type ScheduleInput } from './schedule.ts';

/**
 * How a grant's refreshes go. `retryAt` is on the boot clock, in ms; in doubt the hold-off of the old refresh token comes on top of
 * it, see {@link nextAttemptAt}.
 */
export type RefreshHealth =
  | { readonly kind: 'good' }
  /** It may pass: the hub goes on trying. */
  | {
      readonly kind: 'failing';
      readonly problem: Problem;
      readonly failures: number;
      readonly retryAt: number;
      /** When an appliance that waits may have it tried again, where that is before `retryAt`. */
      readonly onDemandAt?: number;
      /** The portal's certificate does not fit the hub's clock: once that is set, it is tried again at once. */
      readonly waitsForClock?: true;
      /** Nothing left the hub: once it has another address, it is tried again soon. */
      readonly waitsForNetwork?: true;
      /** The hub has got another address since: until something leaves it, its own attempts come sooner. */
      readonly fastRetry?: true;
      readonly rejections?: Rejections;
    }
  /** A person must log in again. `retryAt` is null where the portal said so itself. */
  | {
      readonly kind: 'refused';
      readonly problem: Problem;
      readonly failures: number;
      readonly retryAt: number | null;
      readonly rejections?: Rejections;
    };

/** Rejections in a row. Only another answer of the portal ends the row: while it is out of reach it says nothing new. */
export interface Rejections {
  readonly count: number;
  readonly since: Instant;
}

/** Attempts that the network kept from the portal are repeated within this, in ms. */
const RETRY_WINDOW = 5000;

/** What the hold-off of an old refresh token is worked out from, anew each time: how long the token at hand lives may become known late. */
type HoldOffInput = Pick<RetryContext, 'now' | 'confirmed' | 'retryLostAnswer'>;

/** When a grant is to be refreshed, on the boot clock in ms; null for never, unless a person asks. */
export function nextAttemptAt(
  grant: Grant,
  health: RefreshHealth,
  schedule: ScheduleInput & HoldOffInput,
): number | null {
  if (health.kind !== 'good') return withHoldOff(health.retryAt, grant, schedule);
  return grant.accessTokenRejectedAt === null ? nextRefreshAt(grant, schedule) : forcedRefreshAt(schedule);
}

/** The earliest time, on the boot clock in ms, at which an appliance that waits for a token may have it refreshed. */
export function onDemandAttemptAt(
  grant: Grant,
  health: RefreshHealth,
  timing: HoldOffInput & Pick<ScheduleInput, 'lastForcedRefresh'>,
): number | null {
  if (health.kind === 'good') {
    return grant.accessTokenRejectedAt === null ? onDemandRefreshAt(grant, timing.now) : forcedRefreshAt(timing);
  }
  const retryAt = health.kind === 'failing' ? (health.onDemandAt ?? health.retryAt) : health.retryAt;
  return withHoldOff(retryAt, grant, timing);
}

function withHoldOff(at: number | null, grant: Grant, input: HoldOffInput): number | null {
  const holdOff = lostAnswerHoldOff(grant, input);
  return at === null || holdOff === 0 ? at : Math.max(at, input.now.uptime + holdOff);
}

/** The clock was set: what waited for that is tried within seconds. @param fraction a random number from 0 to 1 */
export function afterClockSet(health: RefreshHealth, now: Instant, fraction: number): RefreshHealth {
  if (health.kind !== 'failing' || health.waitsForClock === undefined) return health;
  const retryAt = Math.min(health.retryAt, now.uptime + 3000 * fraction);
  return { ...health, retryAt, onDemandAt: retryAt };
}

/**
 * The portal has answered another request: what did not reach it is tried again within seconds, and from there on backs off as
 * before. @param fraction a random number from 0 to 1
 */
export function afterPortalResponse(health: RefreshHealth, now: Instant, fraction: number): RefreshHealth {
  if (health.kind !== 'failing' || health.waitsForNetwork === undefined) return health;
  return retryWithin(RETRY_WINDOW * fraction, health, now);
}

/** There is room on the disk again: what could not be written is tried again within seconds. @param fraction a random number from 0 to 1 */
export function afterStoreWritable(health: RefreshHealth, now: Instant, fraction: number): RefreshHealth {
  if (health.kind !== 'failing' || health.problem.code !== 'store_unwritable') return health;
  return retryWithin(RETRY_WINDOW * fraction, health, now);
}

function retryWithin(delay: number, health: Extract<RefreshHealth, { kind: 'failing' }>, now: Instant): RefreshHealth {
  const soon = now.uptime + delay;
  const { retryAt, onDemandAt = retryAt } = health;
  return { ...health, retryAt: Math.min(retryAt, soon), onDemandAt: Math.min(onDemandAt, soon) };
}

/**
 * The hub has another address: what did not leave it is tried again within seconds, and from there on backs off anew, because
 * names may be known a little later. @param fraction a random number from 0 to 1
 */
export function afterNetworkChange(health: RefreshHealth, now: Instant, fraction: number): RefreshHealth {
  const soon = afterPortalResponse(health, now, fraction);
  return soon.kind !== 'failing' || soon === health ? health : { ...soon, failures: 0, fastRetry: true };
}
