import { clockAtFault } from '../certificate-dates.ts';
import { type ConfirmedTime, elapsed, type Instant } from '../clock.ts';
import type { Problem, ProblemCode } from '../reports/problem.ts';
import {
  type Backoff,
  backgroundDelay,
  backoffDelay,
  deferredDelay,
  onDemandBackoff,
  quickBackoff,
  retryAfterDelay,
} from './backoff.ts';
import { type Doubt, type Grant, minRemaining, remaining } from './grant.ts';
import { forcedRefreshAt, nextRefreshAt, onDemandDue, type ScheduleInput } from './schedule.ts';
import type { TokenOutcome } from './token-outcome.ts';

/** How a grant's refreshes go. `retryAt` is on the boot clock, in ms. */
export type Health =
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
      /** What the two times would be if the old refresh token need not rest. */
      readonly withoutHoldOff?: { readonly retryAt: number; readonly onDemandAt: number };
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
interface Rejections {
  readonly count: number;
  readonly since: Instant;
}

/** When the old refresh token is tried again after a lost answer: see DESIGN.md, "Refresh". */
export type Replay = 'soon' | 'late';

/** An outcome that left the hub with the tokens it had. */
export type RefreshFailure =
  | Exclude<TokenOutcome, { kind: 'granted' }>
  | { readonly kind: 'store_unwritable'; readonly detail: string };

/** What a setback makes of a grant: `doubt` and `refused` are kept with it, `health` lives in memory. */
export interface RefreshState {
  readonly doubt: Doubt | null;
  readonly refused: Instant | null;
  readonly health: Health;
}

/** What a setback is judged by. */
export interface RetryContext {
  readonly now: Instant;
  readonly confirmed: ConfirmedTime | null;
  readonly replay: Replay;
  /** A random number from 0 to 1, for jitter. */
  readonly fraction: number;
}

/** Milliseconds to the hub's own next attempt, and to one that an appliance waits for. */
interface Delays {
  readonly background: number;
  readonly onDemand: number;
  /** The portal's certificate does not fit the hub's clock. */
  readonly forClock?: true;
  /** Nothing left the hub. */
  readonly forNetwork?: true;
  /** It has got another address since. */
  readonly fastRetry?: true;
  /** Where these are a rest: what they would be without it. */
  readonly withoutHoldOff?: Pick<Delays, 'background' | 'onDemand'>;
}

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/**
 * What the end of the token at hand is overrun by, in ms, where nothing may be risked before it: a portal counts from
 * when it issued the token, which is a little after the hub asked for it.
 */
const OVER = 1000;
/** Within so many ms those are tried again that the network kept from the portal. */
const SOON = 5000;
/** Seldom: only a person can mend a wrong client_secret. */
const MISCONFIGURED: Backoff = { base: 60_000, cap: HOUR };

/** When a grant is to be refreshed, on the boot clock in ms; null for never, unless a person asks. */
export function dueAt(grant: Grant, health: Health, schedule: ScheduleInput): number | null {
  if (health.kind !== 'good') return health.retryAt;
  return grant.distrusted === null ? nextRefreshAt(grant, schedule) : forcedRefreshAt(schedule);
}

/** The earliest time, on the boot clock in ms, at which an appliance that waits for a token may have it refreshed. */
export function onDemandAt(
  grant: Grant,
  health: Health,
  timing: Pick<ScheduleInput, 'now' | 'lastForcedRefresh'>,
): number | null {
  if (health.kind === 'good') {
    return grant.distrusted === null ? onDemandDue(grant, timing.now) : forcedRefreshAt(timing);
  }
  return health.kind === 'failing' ? (health.onDemandAt ?? health.retryAt) : health.retryAt;
}

/** The clock was set: what waited for that is tried within seconds. @param fraction a random number from 0 to 1 */
export function clockSet(health: Health, now: Instant, fraction: number): Health {
  if (health.kind !== 'failing' || health.waitsForClock === undefined) return health;
  const retryAt = Math.min(health.retryAt, now.uptime + 3000 * fraction);
  return { ...health, retryAt, onDemandAt: retryAt };
}

/**
 * The hub has another address: what did not leave it is tried again within seconds, and from there on backs off anew, because
 * names may be known a little later. @param fraction a random number from 0 to 1
 */
export function networkChanged(health: Health, now: Instant, fraction: number): Health {
  if (health.kind !== 'failing' || health.waitsForNetwork === undefined) return health;
  const soon = now.uptime + SOON * fraction;
  const sooner = ({ retryAt, onDemandAt = retryAt }: { readonly retryAt: number; readonly onDemandAt?: number }) => ({
    retryAt: Math.min(retryAt, soon),
    onDemandAt: Math.min(onDemandAt, soon),
  });
  const { withoutHoldOff } = health;
  return {
    ...health,
    failures: 0,
    fastRetry: true,
    ...sooner(health),
    ...(withoutHoldOff && { withoutHoldOff: sooner(withoutHoldOff) }),
  };
}

/**
 * The token at hand is worth nothing any more: so nothing is lost by another use of the old refresh token, and it need
 * not rest any longer.
 */
export function endReplayHoldOff(health: Health): Health {
  if (health.kind !== 'failing' || health.withoutHoldOff === undefined) return health;
  const { withoutHoldOff, ...others } = health;
  return { ...others, ...withoutHoldOff };
}

/**
 * What follows from an attempt that brought no new tokens (the table of outcomes in DESIGN.md).
 */
export function afterFailure(
  grant: Grant,
  health: Health,
  outcome: RefreshFailure,
  context: RetryContext,
): RefreshState {
  const { now, confirmed, fraction } = context;
  const failures = health.kind === 'good' ? 1 : health.failures + 1;
  if (grant.refused !== null) return refusedState(grant, grant.refused, failures);

  const rejections = rejectionsWith(health, outcome, now);
  const failing = (
    code: ProblemCode,
    message: string,
    delays: Delays,
    doubt: Doubt | null = grant.doubt,
  ): RefreshState => {
    const rest = replayHoldOff({ ...grant, doubt }, context);
    const at = (delay: number) => now.uptime + Math.max(delay, rest);
    const next = {
      failures,
      retryAt: at(delays.background),
      onDemandAt: at(delays.onDemand),
      ...(delays.forClock && { waitsForClock: true as const }),
      ...(delays.forNetwork && { waitsForNetwork: true as const }),
      ...(delays.fastRetry && { fastRetry: true as const }),
      ...(rest > 0 && { withoutHoldOff: timesOf(delays.withoutHoldOff ?? delays, now) }),
      ...(rejections === null ? {} : { rejections }),
    };
    if (health.kind === 'refused' && rejections !== null) {
      return { doubt, refused: null, health: { kind: 'refused', problem: health.problem, ...next } };
    }
    const shown = doubt === null ? problem(health, code, message, now) : doubted(doubt, message);
    return { doubt, refused: null, health: { kind: 'failing', problem: shown, ...next } };
  };
  const onDemand = backoffDelay(onDemandBackoff(grant.lifetime), failures, fraction);
  const fastRetry = health.kind === 'failing' && health.fastRetry === true;
  const background = fastRetry
    ? backoffDelay(quickBackoff(grant.lifetime), failures, fraction)
    : backgroundRetry(grant, failures, context);
  const backedOff = { background, onDemand };

  switch (outcome.kind) {
    case 'not_sent': {
      const fault = outcome.certificate === undefined ? null : clockAtFault(outcome.certificate, now, confirmed);
      if (fault !== null) return failing('clock_unknown', fault, { background: onDemand, onDemand, forClock: true });
      return failing('portal_unreachable', `The portal is out of reach: ${outcome.detail}`, {
        ...backedOff,
        forNetwork: true,
        ...(fastRetry && { fastRetry }),
      });
    }
    case 'deferred': {
      // A portal that names the same short time again and again is backed off from all the same.
      const asked = retryAfterDelay(outcome.retryAfter ?? 0, fraction);
      const again =
        outcome.retryAfter === null ? background : deferredDelay(grant.lifetime, lastingOf(health, now), fraction);
      const delays = { background: Math.max(asked, again), onDemand: Math.max(asked, onDemand) };
      return failing('portal_deferred', `The portal asks to come back later: ${outcome.detail}`, delays);
    }
    case 'ambiguous': {
      const doubt = { ...grant.doubt, lostAt: grant.doubt?.lostAt ?? now, sends: (grant.doubt?.sends ?? 0) + 1 };
      return failing('answer_lost', outcome.detail, replayDelays(grant, doubt, failures, context), doubt);
    }
    case 'misconfigured':
      return failing(
        'misconfigured',
        `The portal does not accept the hub's own credentials: check client_id and client_secret_file (${outcome.detail})`,
        both(backoffDelay(MISCONFIGURED, failures, fraction)),
      );
    case 'rejected': {
      const delays = health.kind === 'refused' ? both(DAY) : backedOff;
      const state = failing('portal_rejected', `The portal rejects the request: ${outcome.detail}`, delays);
      return givenUp(grant, state, context);
    }
    case 'store_unwritable':
      return failing('store_unwritable', `The hub can't write its store: ${outcome.detail}`, both(onDemand));
    case 'refused':
      return refusedState(grant, now, failures);
  }
}

/** How a grant stands right after the hub was started: what its last run left is all that is known. */
export function stateAtStart(grant: Grant, attempt: Instant | null, context: RetryContext): RefreshState {
  if (grant.refused !== null) return refusedState(grant, grant.refused, 1);
  if (attempt !== null) {
    const cutShort = { kind: 'ambiguous', detail: 'the hub was stopped while it waited for an answer' } as const;
    const doubt = grant.doubt ?? { lostAt: attempt, sends: 0 };
    return afterFailure({ ...grant, doubt }, { kind: 'good' }, cutShort, context);
  }
  if (grant.doubt === null) return { doubt: null, refused: null, health: { kind: 'good' } };
  const delays = replayDelays(grant, grant.doubt, 1, context);
  const times = {
    ...timesOf(delays, context.now),
    ...(delays.withoutHoldOff && { withoutHoldOff: timesOf(delays.withoutHoldOff, context.now) }),
  };
  const known = doubted(grant.doubt, 'before the hub was started');
  return { doubt: grant.doubt, refused: null, health: { kind: 'failing', problem: known, failures: 1, ...times } };
}

/**
 * Milliseconds for which the old refresh token must rest because of a doubt, whatever else may happen: each further use
 * might make the portal revoke a token that still serves. With `soon` one early replay is free, and the next comes
 * shortly before the token at hand ends; with `late` there is none before it has ended.
 */
export function replayHoldOff(
  grant: Grant,
  { now, confirmed, replay }: Pick<RetryContext, 'now' | 'confirmed' | 'replay'>,
): number {
  if (grant.doubt === null || awaitsEarlyReplay(grant, { replay })) return 0;
  const left = remaining(grant, now, confirmed) ?? 0;
  if (replay === 'soon') return Math.max(0, left - minRemaining(grant));
  return left > 0 ? left + OVER : 0;
}

/** A lost answer is followed by one early replay, for portals with a grace time, and it has not reached the portal yet. */
function awaitsEarlyReplay({ doubt }: Grant, { replay }: Pick<RetryContext, 'replay'>): boolean {
  return doubt !== null && replay === 'soon' && doubt.sends <= 1;
}

/** For how long the portal has been asking to come back later, in ms. */
function lastingOf(health: Health, now: Instant): number {
  if (health.kind === 'good' || health.problem.code !== 'portal_deferred') return 0;
  return elapsed(health.problem.since, now) ?? 0;
}

/** Milliseconds to the next use of the old refresh token, right after an answer was lost. */
function replayDelays(grant: Grant, doubt: Doubt, failures: number, context: RetryContext): Delays {
  const { replay, fraction } = context;
  if (replay === 'soon' && doubt.sends === 1) return both(1000 + 2000 * fraction);
  const rest = replayHoldOff({ ...grant, doubt }, context);
  const onDemand = backoffDelay(onDemandBackoff(grant.lifetime), failures, fraction);
  const quick = backoffDelay(quickBackoff(grant.lifetime), failures, fraction);
  if (rest > 0) return { ...both(rest), withoutHoldOff: { background: quick, onDemand } };
  return { background: backgroundRetry(grant, failures, context), onDemand };
}

/**
 * Milliseconds to the hub's own next attempt: soon where no other hub has cause for the same, which is where an answer was lost,
 * or an appliance has said that the token at hand is no good.
 */
function backgroundRetry(grant: Grant, failures: number, { replay, fraction }: RetryContext): number {
  return grant.distrusted !== null || awaitsEarlyReplay(grant, { replay })
    ? backoffDelay(quickBackoff(grant.lifetime), failures, fraction)
    : backgroundDelay(grant.lifetime, failures, fraction);
}

function timesOf({ background, onDemand }: Pick<Delays, 'background' | 'onDemand'>, now: Instant) {
  return { retryAt: now.uptime + background, onDemandAt: now.uptime + onDemand };
}

function both(delay: number): Delays {
  return { background: delay, onDemand: delay };
}

/** Rejected three times, over an hour or more, and the token at hand is dead: a person is needed, and one try a day. */
function givenUp(grant: Grant, state: RefreshState, { now, confirmed }: RetryContext): RefreshState {
  const { health } = state;
  if (health.kind !== 'failing' || health.rejections === undefined) return state;
  const { count, since } = health.rejections;
  if (count < 3 || now.uptime - since.uptime < HOUR || (remaining(grant, now, confirmed) ?? 0) > 0) return state;
  const refused = {
    ...health.problem,
    code: 'refused',
    message: `${health.problem.message}, again and again`,
  } as const;
  return { ...state, health: { ...health, kind: 'refused', problem: refused, retryAt: now.uptime + DAY } };
}

/** The rejections in a row when this outcome has come, null where there is no row. */
function rejectionsWith(health: Health, outcome: RefreshFailure, now: Instant): Rejections | null {
  const before = health.kind === 'good' ? undefined : health.rejections;
  switch (outcome.kind) {
    case 'rejected':
      return { count: (before?.count ?? 0) + 1, since: before?.since ?? now };
    case 'not_sent':
    case 'store_unwritable':
      return before ?? null;
    default:
      return null;
  }
}

function refusedState(grant: Grant, since: Instant, failures: number): RefreshState {
  const refused = { code: 'refused', message: refusal(grant.doubt), since } as const;
  return { doubt: grant.doubt, refused: since, health: { kind: 'refused', problem: refused, failures, retryAt: null } };
}

function refusal(doubt: Doubt | null): string {
  if (doubt === null) return 'The portal refused the grant: a person must log in again';
  return doubt.kind === 'copy'
    ? `${originOf(doubt)}, and the portal no longer accepts its refresh token, which another hub, or this one since then, has used: a person must log in again`
    : `${originOf(doubt)}, and the portal no longer accepts the token before it: a person must log in again`;
}

function originOf({ kind, lostAt }: Doubt): string {
  const time = new Date(lostAt.wall).toISOString();
  return kind === 'copy' ? `The grant was restored from a copy of ${time}` : `An answer was lost on ${time}`;
}

/** A problem of the same kind as before keeps the time when it began. */
function problem(health: Health, code: ProblemCode, message: string, now: Instant): Problem {
  const before = health.kind === 'good' ? null : health.problem;
  return { code, message, since: before?.code === code ? before.since : now };
}

/** In doubt, that is the problem to show, whatever came after it. */
function doubted(doubt: Doubt, detail: string): Problem {
  return {
    code: 'answer_lost',
    message: `${originOf(doubt)}, so the refresh token at hand may be used up; the hub tries again (${detail})`,
    since: doubt.lostAt,
  };
}
