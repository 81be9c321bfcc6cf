import { clockFaultMessage, elapsed, HOUR, type Instant, rfc3339 } from '../clock.ts';
import { capitalize } from '../letter-case.ts';
import type { TokenOutcome } from '../portals/token-outcome.ts';
import type { Problem, ProblemCode } from '../reports/problem.ts';
import {
  type Backoff,
  backgroundRetryDelay,
  backoffDelay,
  delayAfterDeferral,
  fastBackoff,
  fixedDelays,
  lostAnswerDelays,
  onDemandBackoff,
  type RetryContext,
  type RetryDelays,
  refreshPeriod,
  retryAfterDelay,
  retryTimes,
} from './backoff.ts';
import { type Doubt, type Grant, remainingLifetime, tokenAge } from './grant.ts';
import { endBeforeRefusal } from './login-end.ts';
import type { RefreshHealth, Rejections, RetryTrigger } from './refresh-health.ts';

/** An attempt's outcome without new tokens in the store: the portal issued none, or the store can't be written. */
export type RefreshFailure =
  | Exclude<TokenOutcome, { kind: 'granted' }>
  | { readonly kind: 'store_unwritable'; readonly detail: string }
  /** The new tokens are stored, but how long they live is not known. */
  | { readonly kind: 'lifetime_unknown'; readonly detail: string };

/** A grant's state after an attempt: `health` is only in memory; the store keeps the rest with the grant. */
export interface RefreshState extends Pick<Grant, 'doubt' | 'refused' | 'misconfigured'> {
  readonly health: RefreshHealth;
}

/** Attempts right after a start are spread over this time, in ms, because there may be many grants. */
const STARTUP_RETRY_WINDOW = 3000;
/** If the refresh token may be what the portal rejects, three attempts show it within ten minutes; in ms. */
const SUSPECT_RETRY_DELAY = 200_000;
/** Slow: only a person can correct a wrong client_secret. */
const MISCONFIGURED_BACKOFF: Backoff = { base: 60_000, cap: HOUR };
const NO_LIMITS = { loginLifetime: null, idleLifetime: null } as const;

/** The state after an attempt that brought no new tokens (docs/decisions/outcomes-are-values.md). */
export function afterFailure(
  grant: Grant,
  health: RefreshHealth,
  outcome: RefreshFailure,
  context: RetryContext,
): RefreshState {
  const { now, confirmed, fraction } = context;
  const failures = health.kind === 'good' ? 1 : health.failures + 1;
  if (grant.refused !== null) return refusedState(grant, grant.refused, failures, context);

  const rejections = countRejections(health, outcome, now);
  const failing = (
    code: ProblemCode,
    message: string,
    delays: RetryDelays,
    { doubt = grant.doubt, ...waits }: { readonly doubt?: Doubt | null; readonly waitsFor?: RetryTrigger } = {},
  ): RefreshState => {
    const next = { failures, ...retryTimes(delays, now), ...waits, ...(rejections === null ? {} : { rejections }) };
    if (health.kind === 'refused' && rejections !== null) {
      const { problem } = health;
      const { misconfigured } = grant;
      return { doubt, refused: null, misconfigured, health: { kind: 'refused', problem, ...next } };
    }
    const shown = doubt === null ? ongoingProblem(health, code, message, now) : doubtProblem(doubt, message);
    // Only new tokens prove that the credentials are right. After any other outcome the next start tries them at once.
    const isRejected = shown.code === 'misconfigured' && !('isMissing' in outcome);
    const misconfigured = isRejected ? shown.since : grant.misconfigured;
    return { doubt, refused: null, misconfigured, health: { kind: 'failing', problem: shown, ...next } };
  };
  const onDemand = backoffDelay(onDemandBackoff(grant.lifetime), failures, fraction);
  const hasChangedNetwork = health.kind === 'failing' && health.waitsFor === 'changed_network';
  const background = hasChangedNetwork
    ? backoffDelay(fastBackoff(grant.lifetime), failures, fraction)
    : backgroundRetryDelay(grant, failures, context);
  const backedOff = { background, onDemand };

  switch (outcome.kind) {
    case 'not_sent': {
      const fault =
        outcome.certificateError === undefined ? null : clockFaultMessage(outcome.certificateError, now, confirmed);
      if (fault !== null) return failing('clock_unknown', fault, fixedDelays(onDemand), { waitsFor: 'clock' });
      return failing('portal_unreachable', `The portal could not be reached: ${outcome.detail}`, backedOff, {
        waitsFor: hasChangedNetwork ? 'changed_network' : 'network',
      });
    }
    case 'deferred': {
      // The delay grows even if the portal names the same short time again and again.
      const period = refreshPeriod(grant, context);
      const duration = deferredFor(health, now);
      // While there is a token to issue, waiting costs nothing. After that, the wait at most doubles the time so far.
      const left = Math.min(
        remainingLifetime(grant, now, confirmed) ?? 0,
        period - (tokenAge(grant, now, confirmed) ?? 0),
      );
      const requested = retryAfterDelay(outcome.retryAfter ?? 0, fraction, Math.max(0.9 * left, duration));
      const ownDelay = outcome.retryAfter === null ? background : delayAfterDeferral(period, duration, fraction);
      const delays = { background: Math.max(requested, ownDelay), onDemand: Math.max(requested, onDemand) };
      const until = outcome.retryAfter === null ? '' : `; the hub waits until ${rfc3339(now.wall + delays.background)}`;
      return failing('portal_deferred', `The portal asks to come back later: ${outcome.detail}${until}`, delays);
    }
    case 'ambiguous': {
      const doubt = { ...grant.doubt, lostAt: grant.doubt?.lostAt ?? now, sends: (grant.doubt?.sends ?? 0) + 1 };
      return failing('answer_lost', outcome.detail, lostAnswerDelays(grant, doubt, failures, context), { doubt });
    }
    case 'misconfigured':
      return failing(
        'misconfigured',
        capitalize(outcome.detail),
        fixedDelays(backoffDelay(MISCONFIGURED_BACKOFF, failures, fraction)),
      );
    case 'blocked': {
      const message =
        outcome.redirect === undefined
          ? `Something before the portal refuses the hub: ${outcome.detail} without an error code of the portal`
          : `The portal's token endpoint sends the hub elsewhere: ${outcome.detail}`;
      return failing('portal_rejected', message, backedOff, { waitsFor: 'network' });
    }
    case 'rejected': {
      const isTokenSuspect = outcome.error === 'invalid_request' && wasRefreshed(grant);
      const soon = Math.max(remainingLifetime(grant, now, confirmed) ?? 0, SUSPECT_RETRY_DELAY);
      const retries = isTokenSuspect ? { background: Math.min(background, soon), onDemand } : backedOff;
      const delays = health.kind === 'refused' ? { background: HOUR, onDemand } : retries;
      const before = isTokenSuspect ? ', although it accepted the same request before' : '';
      const state = failing('portal_rejected', `The portal rejects the request: ${outcome.detail}${before}`, delays);
      return refusedAfterRejections(grant, state, isTokenSuspect, context);
    }
    case 'lifetime_unknown': {
      const delays = fixedDelays(backoffDelay(MISCONFIGURED_BACKOFF, failures, fraction));
      const period = refreshPeriod(grant, context);
      return failing('portal_rejected', outcome.detail, { ...delays, background: Math.max(delays.background, period) });
    }
    case 'store_unwritable':
      return failing('store_unwritable', `The hub can't write its store: ${outcome.detail}`, fixedDelays(onDemand));
    case 'refused':
      return refusedState(grant, now, failures, context);
  }
}

/**
 * A grant's state right after a start, as the last run of the hub left it.
 * @param attempt when the last run sent a refresh that had not ended; null if there is none
 */
export function stateAtStart(grant: Grant, attempt: Instant | null, context: RetryContext): RefreshState {
  if (grant.refused !== null) return refusedState(grant, grant.refused, 1, context);
  // There is nothing that another hub could have used, or that the portal could have replaced.
  if (grant.refreshToken === null) return { doubt: null, refused: null, misconfigured: null, health: { kind: 'good' } };
  if (attempt !== null) {
    const interrupted = { kind: 'ambiguous', detail: 'the hub was stopped while it waited for the response' } as const;
    const doubt = grant.doubt ?? { lostAt: attempt, sends: 0 };
    return afterFailure({ ...grant, doubt }, { kind: 'good' }, interrupted, context);
  }
  const { misconfigured } = grant;
  if (grant.doubt === null) {
    return { doubt: null, refused: null, misconfigured, health: healthAtStart(misconfigured, context) };
  }
  const times = retryTimes(lostAnswerDelays(grant, grant.doubt, 1, context), context.now);
  const problem = doubtProblem(grant.doubt, null);
  const health = { kind: 'failing', problem, failures: 1, ...times } as const;
  return { doubt: grant.doubt, refused: null, misconfigured, health };
}

/** A person may have corrected credentials that the portal did not accept, so the hub tries them within seconds. */
function healthAtStart(misconfigured: Instant | null, { now, fraction }: RetryContext): RefreshHealth {
  if (misconfigured === null) return { kind: 'good' };
  const message =
    "Before the last start or reload, the portal did not accept the hub's own credentials; the hub tries them again now";
  const problem = { code: 'misconfigured', message, since: misconfigured, condition: 'credentials_untried' } as const;
  return { kind: 'failing', problem, failures: 1, retryAt: now.uptime + STARTUP_RETRY_WINDOW * fraction };
}

/** For how long the portal has been asking to come back later, in ms. */
function deferredFor(health: RefreshHealth, now: Instant): number {
  if (health.kind === 'good' || health.problem.code !== 'portal_deferred') return 0;
  return elapsed(health.problem.since, now) ?? 0;
}

/**
 * Whether the portal has accepted a refresh of this grant: then the form of the request is right, and `invalid_request`
 * is about the refresh token.
 */
function wasRefreshed({ login, obtained }: Grant): boolean {
  return login?.at.uptime !== obtained.uptime || login.at.boot !== obtained.boot;
}

/**
 * After three rejections over an hour or more, if the access token has expired, a person is needed. The hub tries once an
 * hour, and when an appliance asks.
 * @param isTokenSuspect whether three such rejections in a row are enough, however soon they come
 */
function refusedAfterRejections(
  grant: Grant,
  state: RefreshState,
  isTokenSuspect: boolean,
  { now, confirmed }: RetryContext,
): RefreshState {
  const { health } = state;
  if (health.kind !== 'failing' || health.rejections === undefined) return state;
  const { count, suspects, since } = health.rejections;
  const isLong = count >= 3 && now.uptime - since.uptime >= HOUR;
  const isRejected = isLong || (isTokenSuspect && suspects >= 3);
  if (!isRejected || (remainingLifetime(grant, now, confirmed) ?? 0) > 0) return state;
  const refused = {
    ...health.problem,
    code: 'refused',
    message: `${health.problem.message}, repeatedly`,
  } as const;
  return { ...state, health: { ...health, kind: 'refused', problem: refused, retryAt: now.uptime + HOUR } };
}

/** The consecutive rejections after this outcome; null if there are none. */
function countRejections(health: RefreshHealth, outcome: RefreshFailure, now: Instant): Rejections | null {
  const before = health.kind === 'good' ? undefined : health.rejections;
  switch (outcome.kind) {
    case 'rejected':
      return {
        count: (before?.count ?? 0) + 1,
        suspects: outcome.error === 'invalid_request' ? (before?.suspects ?? 0) + 1 : 0,
        since: before?.since ?? now,
      };
    case 'not_sent':
    case 'blocked':
    case 'store_unwritable':
      return before ?? null;
    default:
      return null;
  }
}

function refusedState(grant: Grant, since: Instant, failures: number, context: RetryContext): RefreshState {
  const refused = { code: 'refused', message: refusalMessage(grant, since, context), since } as const;
  const health = { kind: 'refused', problem: refused, failures, retryAt: null } as const;
  return { doubt: grant.doubt, refused: since, misconfigured: null, health };
}

function refusalMessage(grant: Grant, since: Instant, { loginLimits = NO_LIMITS }: RetryContext): string {
  const { doubt } = grant;
  if (grant.refreshToken === null) {
    const end =
      grant.accessTokenRejectedAt === null ? 'The access token has ended' : 'The portal refuses the access token';
    return `${end}, and the portal gave no refresh token: ask for the scope offline_access, then connect again`;
  }
  if (doubt === null) {
    const end = endBeforeRefusal(grant, loginLimits, since);
    return end === null
      ? 'The portal refused the grant'
      : `The login ended by itself at ${rfc3339(end)}, as expected, and the portal refused the grant`;
  }
  return doubt.kind === 'copy'
    ? `${describeDoubt(doubt)}, and the portal no longer accepts its refresh token, because another hub has used it, or this one after the copy was made`
    : `${describeDoubt(doubt)}, and the portal no longer accepts the previous refresh token`;
}

function describeDoubt({ kind, lostAt }: Doubt): string {
  const time = new Date(lostAt.wall).toISOString();
  return kind === 'copy' ? `The grant was restored from a copy of ${time}` : `An answer was lost on ${time}`;
}

/** A problem with the same code as before keeps its beginning. */
function ongoingProblem(health: RefreshHealth, code: ProblemCode, message: string, now: Instant): Problem {
  const before = health.kind === 'good' ? null : health.problem;
  return { code, message, since: before?.code === code ? before.since : now };
}

/**
 * While the grant is in doubt, the doubt is the problem to show, whatever failed later.
 * @param detail the outcome of the last attempt; null before the first one
 */
function doubtProblem(doubt: Doubt, detail: string | null): Problem {
  const last = detail === null ? '' : ` (${detail})`;
  return {
    code: 'answer_lost',
    message: `${describeDoubt(doubt)}, so the portal may have replaced the refresh token${last}`,
    since: doubt.lostAt,
  };
}
