import type { Instant } from '../clock.ts';
import type { Problem } from '../reports/problem.ts';
import { lostAnswerHoldOff, type RetryContext } from './backoff.ts';
import { type Grant, tokenAge } from './grant.ts';
import { accessTokenEnd, forcedRefreshAt, nextRefreshAt, onDemandRefreshAt, type ScheduleInput } from './schedule.ts';

/**
 * How well the refreshes of a grant work. `retryAt` is on the boot clock, in ms. If the grant is in doubt, the hold-off
 * of the old refresh token may delay the attempt further, see {@link nextAttemptAt}.
 */
export type RefreshHealth =
  | { readonly kind: 'good' }
  /** The problem may resolve itself: the hub keeps trying. */
  | {
      readonly kind: 'failing';
      readonly problem: Problem;
      readonly failures: number;
      readonly retryAt: number;
      /**
       * When an appliance's token request may trigger the next attempt, if that is before `retryAt`. On the boot clock,
       * in ms.
       */
      readonly onDemandAt?: number;
      readonly waitsFor?: RetryTrigger;
      readonly rejections?: Rejections;
    }
  /** A person must log in again. `retryAt` is null if the portal explicitly refused the grant. */
  | {
      readonly kind: 'refused';
      readonly problem: Problem;
      readonly failures: number;
      readonly retryAt: number | null;
      /** As above. */
      readonly onDemandAt?: number;
      readonly rejections?: Rejections;
    };

/**
 * What makes the next attempt come earlier:
 *
 * - `clock`: by the hub's clock the portal's certificate is not valid; the hub tries again as soon as the clock is set;
 * - `network`: the request did not reach the portal; the hub tries again soon after its address changes;
 * - `changed_network`: the same, and the address has changed; until a request is sent, background attempts come sooner.
 */
export type RetryTrigger = 'clock' | 'network' | 'changed_network';

/** Consecutive rejections. Only another response of the portal itself ends the series. */
export interface Rejections {
  readonly count: number;
  /** The last of them that were `invalid_request`, one after another. */
  readonly suspects: number;
  readonly since: Instant;
}

/**
 * An attempt that could not reach the portal or the disk is repeated within this time after the cause is gone, in ms.
 */
const RETRY_WINDOW = 5000;

/**
 * The input of the hold-off of an old refresh token. The hold-off is computed again each time, because the age of the
 * current access token may become known late.
 */
type HoldOffInput = Pick<RetryContext, 'now' | 'confirmed' | 'retryLostAnswer'>;

/**
 * When to refresh a grant, on the boot clock in ms; null for never, unless a person forces a refresh, and for a time that
 * is not known yet, see {@link nextRefreshAt}.
 */
export function nextAttemptAt(
  grant: Grant,
  health: RefreshHealth,
  schedule: ScheduleInput & HoldOffInput,
): number | null {
  if (health.kind !== 'good') return withHoldOff(health.retryAt, grant, schedule);
  const due = nextRefreshAt(grant, schedule);
  const isForced = grant.accessTokenRejectedAt !== null && grant.refreshToken !== null;
  // A token that would have been refreshed by now is refreshed, whether it was rejected or not.
  return isForced ? Math.min(forcedRefreshAt(schedule), due ?? Number.POSITIVE_INFINITY) : due;
}

/**
 * The earliest time at which an appliance's token request may trigger a refresh, on the boot clock in ms; null as for
 * {@link nextAttemptAt}.
 */
export function onDemandAttemptAt(
  grant: Grant,
  health: RefreshHealth,
  timing: HoldOffInput & Pick<ScheduleInput, 'lastForcedRefresh' | 'startedAt'>,
): number | null {
  if (health.kind === 'good') {
    if (grant.refreshToken === null) return accessTokenEnd(grant, timing);
    const { now, confirmed } = timing;
    const onDemand = onDemandRefreshAt(grant, now);
    if (grant.accessTokenRejectedAt === null) return onDemand;
    const age = tokenAge(grant, now, confirmed);
    const ended = age === null ? Number.POSITIVE_INFINITY : now.uptime - age + grant.lifetime;
    return Math.min(forcedRefreshAt(timing), Math.max(onDemand, ended));
  }
  return withHoldOff(health.onDemandAt ?? health.retryAt, grant, timing);
}

function withHoldOff(at: number | null, grant: Grant, input: HoldOffInput): number | null {
  const holdOff = lostAnswerHoldOff(grant, input);
  return at === null || holdOff === 0 ? at : Math.max(at, input.now.uptime + holdOff);
}

/**
 * After the clock was set, an attempt that waited for that follows within seconds.
 * @param fraction a random number from 0 to 1
 */
export function afterClockSet(health: RefreshHealth, now: Instant, fraction: number): RefreshHealth {
  if (health.kind !== 'failing' || health.waitsFor !== 'clock') return health;
  const retryAt = Math.min(health.retryAt, now.uptime + 3000 * fraction);
  return { ...health, retryAt, onDemandAt: retryAt };
}

/**
 * After the portal responded to another request, a grant whose request could not be sent is tried again within seconds.
 * Its backoff then continues as before.
 * @param fraction a random number from 0 to 1
 */
export function afterPortalResponse(health: RefreshHealth, now: Instant, fraction: number): RefreshHealth {
  if (!waitsForNetwork(health)) return health;
  return retryWithin(RETRY_WINDOW * fraction, health, now);
}

/**
 * After the store became writable again, a grant that could not be written is tried again within seconds.
 * @param fraction a random number from 0 to 1
 */
export function afterStoreWritable(health: RefreshHealth, now: Instant, fraction: number): RefreshHealth {
  if (health.kind !== 'failing' || health.problem.code !== 'store_unwritable') return health;
  return retryWithin(RETRY_WINDOW * fraction, health, now);
}

/** Whether the last request did not reach the portal. */
export function waitsForNetwork(health: RefreshHealth): health is Extract<RefreshHealth, { kind: 'failing' }> {
  return health.kind === 'failing' && (health.waitsFor === 'network' || health.waitsFor === 'changed_network');
}

function retryWithin(delay: number, health: Extract<RefreshHealth, { kind: 'failing' }>, now: Instant): RefreshHealth {
  const soon = now.uptime + delay;
  const { retryAt, onDemandAt = retryAt } = health;
  return { ...health, retryAt: Math.min(retryAt, soon), onDemandAt: Math.min(onDemandAt, soon) };
}

/**
 * After the hub's address changed, a grant whose request could not be sent is tried again within seconds. Its backoff
 * then starts again from the first delay, because DNS may work only a little later.
 * @param fraction a random number from 0 to 1
 */
export function afterNetworkChange(health: RefreshHealth, now: Instant, fraction: number): RefreshHealth {
  const soon = afterPortalResponse(health, now, fraction);
  return soon.kind !== 'failing' || soon === health ? health : { ...soon, failures: 0, waitsFor: 'changed_network' };
}
