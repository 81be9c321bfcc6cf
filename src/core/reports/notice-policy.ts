import type { ApplianceState } from '../administration.ts';
import type { ApplianceCondition, HubCondition, HubConditionCode } from '../health/condition.ts';
import type { Notice, NoticeCode, NoticeReport } from './notice.ts';

/** What notices go by: how an appliance stands, and what is known of the grant that is at work for it. */
export interface ApplianceNoticeInput {
  readonly name: string;
  readonly state: ApplianceState;
  /** Its condition that there may be a notice of; null where there is none. */
  readonly condition: ApplianceCondition | null;
  readonly grant: GrantNoticeInput | null;
}

/** Times in ms. */
export interface GrantNoticeInput {
  readonly generation: number;
  /** The last try in this run of the hub brought no new tokens. */
  readonly isFailing: boolean;
  /** What is left of the token at hand; null where nobody can know. */
  readonly remaining: number | null;
  readonly lifetime: number;
  /** For how long the grant has had no new token though it was time for one; null where nobody can know. */
  readonly overdue: number | null;
}

/** For how long refreshes have failed, in ms, and since when, in RFC 3339 UTC. */
export interface FailurePeriod {
  readonly duration: number;
  readonly since: string;
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Of what stands longer than the lesser ones the greater is told; what a person must see to is told whatever it follows. */
const PRIORITY: Partial<Record<NoticeCode, number>> = {
  answer_lost: 0,
  misconfigured: 1,
  refresh_failing: 2,
  token_ending: 3,
};

/** How long refreshes must fail in a run of the hub before it counts what was overdue when it began, in ms. */
const STARTUP_GRACE = 10 * MINUTE;
/** A lost answer is told of when the early try with the old refresh token has not helped, in ms. */
const EARLY_RETRY = MINUTE;

/** For how long a hub's problem must stand until it is a notice, and a notice of before a restart stays before it is over, in ms. */
const HUB_NOTICE_DELAY: Record<HubConditionCode, number> = {
  not_announced: 10 * MINUTE,
  hub_id_taken: 0,
  hub_name_claimed: 10 * MINUTE,
  store_changed: 0,
  store_recovered: 0,
  store_unwritable: 0,
  wrong_setup_codes: 0,
};

/** What is known of wrong codes goes with a restart; this is how long a burst lasts without one. In ms. */
const RESTART_RETENTION: Partial<Record<NoticeCode, number>> = { ...HUB_NOTICE_DELAY, wrong_setup_codes: 2 * HOUR };

/** Whether a notice is told when it begins and when it is over, and not each day between. */
export function isNotRepeated(code: NoticeCode): boolean {
  return code === 'answer_lost' || code === 'store_recovered' || code === 'wrong_setup_codes';
}

/**
 * For how long refreshes have failed, in ms. What was overdue when the hub was started counts when they have gone on failing for a
 * while: a hub that boots before its router knows nothing yet.
 * @param observed for how long this run of the hub has seen them fail
 */
export function failureDuration(observed: number, overdue: number | null): number {
  return observed < STARTUP_GRACE ? observed : Math.max(observed, overdue ?? 0);
}

/**
 * The notice of an appliance: of its condition, as soon as that is worth one; null where it is not.
 * @param failing null where refreshes do not fail
 */
export function applianceNotice(
  { condition, grant }: ApplianceNoticeInput,
  failing: FailurePeriod | null,
): Notice | null {
  if (condition === null) return null;
  switch (condition.code) {
    case 'approval_needed':
      return toNotice('approval_needed', condition);
    case 'refused':
    case 'portal_changed':
    case 'grant_damaged':
      return toNotice('pairing_needed', condition);
    case 'misconfigured':
      return toNotice('misconfigured', condition);
    case 'store_unwritable':
    case 'pairing_failed':
      // The hub has a notice of the one; who began a pairing sees the other.
      return null;
  }
  if (grant === null || failing === null) return null;
  const code = longFailureCode(condition, grant, failing.duration);
  return code && toNotice(code, condition, grant, failing.since);
}

/** Of what may pass by itself: whether it has lasted long enough for somebody to be told. */
function longFailureCode({ code }: ApplianceCondition, grant: GrantNoticeInput, lasting: number): NoticeCode | null {
  if (lasting >= HOUR && isTokenEnding(grant)) return 'token_ending';
  if (lasting >= DAY) return 'refresh_failing';
  return code === 'answer_lost' && lasting >= EARLY_RETRY ? 'answer_lost' : null;
}

/** @param since RFC 3339 UTC: when refreshes began to fail, if that is what is told */
function toNotice(
  code: NoticeCode,
  condition: ApplianceCondition,
  grant: GrantNoticeInput | null = null,
  since = condition.since ?? '',
): Notice {
  const { severity, appliance, what_to_do } = condition;
  const notice = { code, severity: severity === 'error' ? severity : 'warning', appliance, what_to_do, since } as const;
  if (code !== 'token_ending' && code !== 'refresh_failing') return { ...notice, message: condition.message };
  const ends = grant?.remaining == null || grant.remaining > 0 ? 'ends soon' : 'has ended';
  const atHand = code === 'token_ending' ? `, and the one at hand ${ends}` : '';
  return { ...notice, message: `${condition.message}; it has had no new token since ${since}${atHand}` };
}

/** The notice that is told of the hub. @param lasting for how long this run of the hub has seen it, in ms */
export function hubNotice(
  { code, severity, message, what_to_do, since }: HubCondition,
  lasting: number,
): Notice | null {
  if (severity === 'info' || since === null || lasting < HUB_NOTICE_DELAY[code]) return null;
  return { code, severity, appliance: null, message, what_to_do, since };
}

/**
 * The notice that stands towards those who were told of it. A hub that was started anew has not tried anything yet, and a portal that
 * answers otherwise has not given a token: what is wrong with refreshes is over when there are new tokens, or no grant.
 * @param before the notice, and the generation of the grant that it was of
 * @param now the appliance, undefined where it was removed, and its notice by what is known in this run
 */
export function currentNotice(
  before: { readonly notice: Notice; readonly generation: number | null },
  now: { readonly facts: ApplianceNoticeInput | undefined; readonly notice: Notice | null },
): Notice | null {
  const { facts, notice: fresh } = now;
  const held = facts !== undefined && isStillOpen(before.notice.code, before.generation, facts) ? before.notice : null;
  if (held === null || facts === undefined) return fresh;
  const isGraver = fresh !== null && (PRIORITY[fresh.code] ?? 4) > (PRIORITY[held.code] ?? -1);
  if (fresh !== null && fresh.code !== held.code && (fresh.severity === 'error' || isGraver)) return fresh;
  const { condition, grant } = facts;
  if (fresh?.code === held.code) return { ...fresh, since: held.since };
  return matchesCondition(held, condition) ? toNotice(held.code, condition, grant, held.since) : held;
}

/** Whether a notice that stood before says what is known now too; one that does not stays out of `status`. */
export function matchesCondition(
  { severity }: Notice,
  condition: ApplianceCondition | null,
): condition is ApplianceCondition {
  return severity === 'warning' && condition?.severity === 'warning';
}

/** Whether a notice of the hub as a whole stays though nothing is seen of it: the hub has not run for long enough. @param running in ms */
export function isKeptAfterRestart(code: NoticeCode, running: number): boolean {
  return running < (RESTART_RETENTION[code] ?? 0);
}

/** What is told when a notice is over. @param facts undefined where the appliance was removed */
export function resolvedMessage({ appliance, message }: Notice, facts: ApplianceNoticeInput | undefined): string {
  if (appliance === null) return `This is over: ${message}`;
  if (facts === undefined) return `${appliance} was removed from the hub`;
  if (facts.state === 'active' || facts.state === 'retrying') return `${appliance} is connected again`;
  return `${appliance} needs nothing any more`;
}

/** What is sent where somebody tries whether notices arrive. @param since now, RFC 3339 UTC */
export function testReport(since: string): NoticeReport {
  const message = 'This is a test: notices of this hub arrive here';
  const wrong = { notice: 'test', severity: 'warning', appliance: null } as const;
  return { status: 'raised', ...wrong, message, what_to_do: 'Nothing', since };
}

function isStillOpen(code: NoticeCode, generation: number | null, { state, grant }: ApplianceNoticeInput): boolean {
  if (code === 'approval_needed') return false;
  // An open pairing hides what it is for, until it succeeds.
  if (grant === null) return code === 'pairing_needed' && state === 'pairing';
  if (grant.generation !== generation) return false;
  // Of a grant that rested the token at hand may be good still.
  return code !== 'pairing_needed' || grant.isFailing || (grant.remaining ?? 0) === 0;
}

/** Where nobody knows how old the token is, nobody can be given it. */
function isTokenEnding({ remaining: left, lifetime }: GrantNoticeInput): boolean {
  return left === null || left <= lifetime / 10;
}
