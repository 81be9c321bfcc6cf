import {
  askedDelay,
  type Backoff,
  backoffDelay,
  deferredDelay,
  ownDelay,
  promptedBackoff,
  quickBackoff,
} from './backoff.ts';
import { clockAtFault } from './certificate-dates.ts';
import { type ConfirmedTime, elapsed, type Instant } from './clock.ts';
import { type Doubt, type Grant, leastLeft, remaining } from './grant.ts';
import type { TokenOutcome } from './outcome.ts';
import type { Problem, ProblemCode } from './problem.ts';
import { distrustedDue, promptedDue, regularDue, type Timetable } from './schedule.ts';

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
      readonly promptedAt?: number;
      /** The portal's certificate does not fit the hub's clock: once that is set, it is tried again at once. */
      readonly waitsForClock?: true;
      /** Nothing left the hub: once it has another address, it is tried again soon. */
      readonly waitsForNetwork?: true;
      /** The hub has got another address since: until something leaves it, its own attempts come sooner. */
      readonly hurried?: true;
      /** What the two times would be if the old refresh token need not rest. */
      readonly unrested?: { readonly retryAt: number; readonly promptedAt: number };
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
export type Setback =
  | Exclude<TokenOutcome, { kind: 'granted' }>
  | { readonly kind: 'store_unwritable'; readonly detail: string };

/** What a setback makes of a grant: `doubt` and `refused` are kept with it, `health` lives in memory. */
export interface Standing {
  readonly doubt: Doubt | null;
  readonly refused: Instant | null;
  readonly health: Health;
}

/** What a setback is judged by. */
export interface SetbackContext {
  readonly now: Instant;
  readonly confirmed: ConfirmedTime | null;
  readonly replay: Replay;
  /** A random number from 0 to 1, for jitter. */
  readonly fraction: number;
}

/** Milliseconds to the hub's own next attempt, and to one that an appliance waits for. */
interface Delays {
  readonly own: number;
  readonly prompted: number;
  /** The portal's certificate does not fit the hub's clock. */
  readonly forClock?: true;
  /** Nothing left the hub. */
  readonly forNetwork?: true;
  /** It has got another address since. */
  readonly hurried?: true;
  /** Where these are a rest: what they would be without it. */
  readonly unrested?: Pick<Delays, 'own' | 'prompted'>;
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
export function dueAt(grant: Grant, health: Health, timetable: Timetable): number | null {
  if (health.kind !== 'good') return health.retryAt;
  return grant.distrusted === null ? regularDue(grant, timetable) : distrustedDue(timetable);
}

/** The earliest time, on the boot clock in ms, at which an appliance that waits for a token may have it refreshed. */
export function promptedAt(grant: Grant, health: Health, timing: Pick<Timetable, 'now' | 'provoked'>): number | null {
  if (health.kind === 'good') {
    return grant.distrusted === null ? promptedDue(grant, timing.now) : distrustedDue(timing);
  }
  return health.kind === 'failing' ? (health.promptedAt ?? health.retryAt) : health.retryAt;
}

/** The clock was set: what waited for that is tried within seconds. @param fraction a random number from 0 to 1 */
export function clockSet(health: Health, now: Instant, fraction: number): Health {
  if (health.kind !== 'failing' || health.waitsForClock === undefined) return health;
  const retryAt = Math.min(health.retryAt, now.uptime + 3000 * fraction);
  return { ...health, retryAt, promptedAt: retryAt };
}

/**
 * The hub has another address: what did not leave it is tried again within seconds, and from there on backs off anew, because
 * names may be known a little later. @param fraction a random number from 0 to 1
 */
export function networkChanged(health: Health, now: Instant, fraction: number): Health {
  if (health.kind !== 'failing' || health.waitsForNetwork === undefined) return health;
  const soon = now.uptime + SOON * fraction;
  const sooner = ({ retryAt, promptedAt = retryAt }: { readonly retryAt: number; readonly promptedAt?: number }) => ({
    retryAt: Math.min(retryAt, soon),
    promptedAt: Math.min(promptedAt, soon),
  });
  const { unrested } = health;
  return { ...health, failures: 0, hurried: true, ...sooner(health), ...(unrested && { unrested: sooner(unrested) }) };
}

/**
 * The token at hand is worth nothing any more: so nothing is lost by another use of the old refresh token, and it need
 * not rest any longer.
 */
export function withoutRest(health: Health): Health {
  if (health.kind !== 'failing' || health.unrested === undefined) return health;
  const { unrested, ...others } = health;
  return { ...others, ...unrested };
}

/**
 * What follows from an attempt that brought no new tokens (the table of outcomes in DESIGN.md).
 */
export function setBack(grant: Grant, health: Health, outcome: Setback, context: SetbackContext): Standing {
  const { now, confirmed, fraction } = context;
  const failures = health.kind === 'good' ? 1 : health.failures + 1;
  if (grant.refused !== null) return refusedStanding(grant, grant.refused, failures);

  const rejections = rejectionsWith(health, outcome, now);
  const failing = (code: ProblemCode, message: string, delays: Delays, doubt: Doubt | null = grant.doubt): Standing => {
    const rest = restIn({ ...grant, doubt }, context);
    const at = (delay: number) => now.uptime + Math.max(delay, rest);
    const next = {
      failures,
      retryAt: at(delays.own),
      promptedAt: at(delays.prompted),
      ...(delays.forClock && { waitsForClock: true as const }),
      ...(delays.forNetwork && { waitsForNetwork: true as const }),
      ...(delays.hurried && { hurried: true as const }),
      ...(rest > 0 && { unrested: timesOf(delays.unrested ?? delays, now) }),
      ...(rejections === null ? {} : { rejections }),
    };
    if (health.kind === 'refused' && rejections !== null) {
      return { doubt, refused: null, health: { kind: 'refused', problem: health.problem, ...next } };
    }
    const shown = doubt === null ? problem(health, code, message, now) : doubted(doubt, message);
    return { doubt, refused: null, health: { kind: 'failing', problem: shown, ...next } };
  };
  const prompted = backoffDelay(promptedBackoff(grant.lifetime), failures, fraction);
  const hurried = health.kind === 'failing' && health.hurried === true;
  const own = hurried
    ? backoffDelay(quickBackoff(grant.lifetime), failures, fraction)
    : ownRetry(grant, failures, context);
  const backedOff = { own, prompted };

  switch (outcome.kind) {
    case 'not_sent': {
      const fault = outcome.certificate === undefined ? null : clockAtFault(outcome.certificate, now, confirmed);
      if (fault !== null) return failing('clock_unknown', fault, { own: prompted, prompted, forClock: true });
      return failing('portal_unreachable', `The portal is out of reach: ${outcome.detail}`, {
        ...backedOff,
        forNetwork: true,
        ...(hurried && { hurried }),
      });
    }
    case 'deferred': {
      // A portal that names the same short time again and again is backed off from all the same.
      const asked = askedDelay(outcome.retryAfter ?? 0, fraction);
      const again = outcome.retryAfter === null ? own : deferredDelay(grant.lifetime, lastingOf(health, now), fraction);
      const delays = { own: Math.max(asked, again), prompted: Math.max(asked, prompted) };
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
      const standing = failing('portal_rejected', `The portal rejects the request: ${outcome.detail}`, delays);
      return givenUp(grant, standing, context);
    }
    case 'store_unwritable':
      return failing('store_unwritable', `The hub can't write its store: ${outcome.detail}`, both(prompted));
    case 'refused':
      return refusedStanding(grant, now, failures);
  }
}

/** How a grant stands right after the hub was started: what its last run left is all that is known. */
export function standingAtStart(grant: Grant, attempt: Instant | null, context: SetbackContext): Standing {
  if (grant.refused !== null) return refusedStanding(grant, grant.refused, 1);
  if (attempt !== null) {
    const cutShort = { kind: 'ambiguous', detail: 'the hub was stopped while it waited for an answer' } as const;
    const doubt = grant.doubt ?? { lostAt: attempt, sends: 0 };
    return setBack({ ...grant, doubt }, { kind: 'good' }, cutShort, context);
  }
  if (grant.doubt === null) return { doubt: null, refused: null, health: { kind: 'good' } };
  const delays = replayDelays(grant, grant.doubt, 1, context);
  const times = {
    ...timesOf(delays, context.now),
    ...(delays.unrested && { unrested: timesOf(delays.unrested, context.now) }),
  };
  const known = doubted(grant.doubt, 'before the hub was started');
  return { doubt: grant.doubt, refused: null, health: { kind: 'failing', problem: known, failures: 1, ...times } };
}

/**
 * Milliseconds for which the old refresh token must rest because of a doubt, whatever else may happen: each further use
 * might make the portal revoke a token that still serves. With `soon` one early replay is free, and the next comes
 * shortly before the token at hand ends; with `late` there is none before it has ended.
 */
export function restIn(
  grant: Grant,
  { now, confirmed, replay }: Pick<SetbackContext, 'now' | 'confirmed' | 'replay'>,
): number {
  if (grant.doubt === null || awaitsEarlyReplay(grant, { replay })) return 0;
  const left = remaining(grant, now, confirmed) ?? 0;
  if (replay === 'soon') return Math.max(0, left - leastLeft(grant));
  return left > 0 ? left + OVER : 0;
}

/** A lost answer is followed by one early replay, for portals with a grace time, and it has not reached the portal yet. */
function awaitsEarlyReplay({ doubt }: Grant, { replay }: Pick<SetbackContext, 'replay'>): boolean {
  return doubt !== null && replay === 'soon' && doubt.sends <= 1;
}

/** For how long the portal has been asking to come back later, in ms. */
function lastingOf(health: Health, now: Instant): number {
  if (health.kind === 'good' || health.problem.code !== 'portal_deferred') return 0;
  return elapsed(health.problem.since, now) ?? 0;
}

/** Milliseconds to the next use of the old refresh token, right after an answer was lost. */
function replayDelays(grant: Grant, doubt: Doubt, failures: number, context: SetbackContext): Delays {
  const { replay, fraction } = context;
  if (replay === 'soon' && doubt.sends === 1) return both(1000 + 2000 * fraction);
  const rest = restIn({ ...grant, doubt }, context);
  const prompted = backoffDelay(promptedBackoff(grant.lifetime), failures, fraction);
  const quick = backoffDelay(quickBackoff(grant.lifetime), failures, fraction);
  if (rest > 0) return { ...both(rest), unrested: { own: quick, prompted } };
  return { own: ownRetry(grant, failures, context), prompted };
}

/**
 * Milliseconds to the hub's own next attempt: soon where no other hub has cause for the same, which is where an answer was lost,
 * or an appliance has said that the token at hand is no good.
 */
function ownRetry(grant: Grant, failures: number, { replay, fraction }: SetbackContext): number {
  return grant.distrusted !== null || awaitsEarlyReplay(grant, { replay })
    ? backoffDelay(quickBackoff(grant.lifetime), failures, fraction)
    : ownDelay(grant.lifetime, failures, fraction);
}

function timesOf({ own, prompted }: Pick<Delays, 'own' | 'prompted'>, now: Instant) {
  return { retryAt: now.uptime + own, promptedAt: now.uptime + prompted };
}

function both(delay: number): Delays {
  return { own: delay, prompted: delay };
}

/** Rejected three times, over an hour or more, and the token at hand is dead: a person is needed, and one try a day. */
function givenUp(grant: Grant, standing: Standing, { now, confirmed }: SetbackContext): Standing {
  const { health } = standing;
  if (health.kind !== 'failing' || health.rejections === undefined) return standing;
  const { count, since } = health.rejections;
  if (count < 3 || now.uptime - since.uptime < HOUR || (remaining(grant, now, confirmed) ?? 0) > 0) return standing;
  const refused = {
    ...health.problem,
    code: 'refused',
    message: `${health.problem.message}, again and again`,
  } as const;
  return { ...standing, health: { ...health, kind: 'refused', problem: refused, retryAt: now.uptime + DAY } };
}

/** The rejections in a row when this outcome has come, null where there is no row. */
function rejectionsWith(health: Health, outcome: Setback, now: Instant): Rejections | null {
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

function refusedStanding(grant: Grant, since: Instant, failures: number): Standing {
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
