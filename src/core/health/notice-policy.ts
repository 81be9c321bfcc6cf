import { DAY, HOUR } from '../clock.ts';
import type { ConnectionState } from '../connections/connection-status.ts';
import { type HubCondition, type SubjectCondition, subjectRecord } from './condition.ts';
import { HUB_CONDITIONS, type HubConditionRecord } from './hub-conditions.ts';
import {
  type Notice,
  type NoticeCode,
  type NoticeReport,
  SUBJECT_NOTICES,
  type SubjectNoticeRecord,
} from './notice.ts';

/** What decides about the notice of a connection, or of an appliance that waits for approval. */
export interface SubjectNoticeInput {
  /** Identifies it among all; the same after a restart. */
  readonly key: string;
  readonly title: string;
  readonly state: ConnectionState;
  /** The condition that may lead to a notice; null if there is none. */
  readonly condition: SubjectCondition | null;
  /** The reminder, see {@link isReminder}, if there is one besides a graver condition; left out otherwise. */
  readonly reminder?: SubjectCondition;
  readonly grant: GrantNoticeInput | null;
}

/** Times in ms. */
export interface GrantNoticeInput {
  readonly generation: number;
  /** Whether the last attempt of this run of the hub brought no new tokens. */
  readonly isFailing: boolean;
  /** Remaining lifetime of the current access token; null if it is unknown. */
  readonly remaining: number | null;
  readonly lifetime: number;
  /** For how long a refresh has been overdue; null if it is unknown. */
  readonly overdue: number | null;
}

/** How long refreshes have failed, in ms, and since when, in RFC 3339 UTC. */
export interface FailurePeriod {
  readonly duration: number;
  readonly since: string;
}

const MINUTE = 60_000;

// A notice that another version has sent may have a code that this one does not know.
const subjectNotices: Readonly<Record<string, SubjectNoticeRecord>> = SUBJECT_NOTICES;
const hubConditions: Readonly<Record<string, HubConditionRecord>> = HUB_CONDITIONS;

/** Whether a condition or a notice only points to something while all is well. */
export function isReminder({ code }: { readonly code: string }): boolean {
  return subjectNotices[code]?.reminderOver !== undefined;
}

/** How long refreshes must fail in this run before {@link failureDuration} counts the time before its start, in ms. */
const STARTUP_GRACE = 10 * MINUTE;
/** A lost answer leads to a notice only after the early retry with the old refresh token has failed, in ms. */
const EARLY_RETRY = MINUTE;

/** Whether a notice is sent only when it begins and when it is over, and is not repeated daily. */
export function isNotRepeated(code: NoticeCode): boolean {
  return (subjectNotices[code] ?? hubConditions[code])?.isReportedOnce === true;
}

/**
 * How long refreshes have failed, in ms. The overdue time from before the start counts only after refreshes have failed
 * for {@link STARTUP_GRACE}: a hub may boot before its router does.
 * @param observed how long refreshes have failed in this run of the hub, in ms
 */
export function failureDuration(observed: number, overdue: number | null): number {
  return observed < STARTUP_GRACE ? observed : Math.max(observed, overdue ?? 0);
}

/**
 * The notice for the condition of a connection or an appliance; null if the condition leads to none, or has not lasted long enough.
 * @param failing null if refreshes do not fail
 */
export function subjectNotice(
  { condition, reminder, grant }: SubjectNoticeInput,
  failing: FailurePeriod | null,
): Notice | null {
  if (condition === null) return null;
  const atOnce = noticeAtOnce(condition);
  if (atOnce !== null) return atOnce;
  if (grant !== null && failing !== null && subjectRecord(condition.code).notice === 'if_it_lasts') {
    const code = longFailureCode(condition, grant, failing.duration);
    if (code !== null) return toNotice(code, condition, grant, failing.since);
  }
  return reminder === undefined ? null : noticeAtOnce(reminder);
}

function noticeAtOnce(condition: SubjectCondition): Notice | null {
  const { notice } = subjectRecord(condition.code);
  return notice === null || notice === 'if_it_lasts' || notice === 'of_hub' ? null : toNotice(notice, condition);
}

/** The notice for a problem that may resolve itself; null if it has not lasted long enough. @param duration in ms */
function longFailureCode({ code }: SubjectCondition, grant: GrantNoticeInput, duration: number): NoticeCode | null {
  if (duration >= HOUR && isTokenEnding(grant)) return 'token_ending';
  if (duration >= DAY) return 'refresh_failing';
  return code === 'answer_lost' && duration >= EARLY_RETRY ? 'answer_lost' : null;
}

/** @param since RFC 3339 UTC: when refreshes began to fail, if the notice is about that */
function toNotice(
  code: NoticeCode,
  condition: SubjectCondition,
  grant: GrantNoticeInput | null = null,
  since = condition.since ?? '',
): Notice {
  const { severity, connection, appliance, appliances, what_to_do } = condition;
  const subject = { connection, appliance, appliances };
  const notice = {
    code,
    severity: severity === 'error' ? severity : 'warning',
    ...subject,
    what_to_do,
    since,
  } as const;
  if (code !== 'token_ending' && code !== 'refresh_failing') return { ...notice, message: condition.message };
  const expiry = grant?.remaining == null || grant.remaining > 0 ? 'expires soon' : 'has expired';
  const currentToken = code === 'token_ending' ? `, and the current token ${expiry}` : '';
  return { ...notice, message: `${condition.message}; it has had no new token since ${since}${currentToken}` };
}

/**
 * The notice for a condition of the hub; null if it has not lasted long enough.
 * @param duration how long this run of the hub has seen the condition, in ms
 */
export function hubNotice({ until: _, address: __, ...condition }: HubCondition, duration: number): Notice | null {
  const { delay = 0 } = HUB_CONDITIONS[condition.code];
  return duration < delay ? null : condition;
}

/**
 * The open notice of a connection or an appliance, given the one that was sent last. A notice about refreshes is over only when
 * there are new tokens or no grant: a restarted hub has not tried anything yet, and a portal that fails in another way
 * has not issued a token.
 * @param before the notice, and the generation of the grant that it was about
 * @param now the subject, undefined if it was removed, and its notice according to this run of the hub
 */
export function currentNotice(
  before: { readonly notice: Notice; readonly generation: number | null },
  now: { readonly facts: SubjectNoticeInput | undefined; readonly notice: Notice | null },
): Notice | null {
  const { facts, notice: fresh } = now;
  const held = facts !== undefined && isStillOpen(before.notice.code, before.generation, facts) ? before.notice : null;
  if (held === null || facts === undefined) return fresh;
  const isGraver = fresh !== null && priorityOf(fresh) > priorityOf(held);
  if (fresh !== null && fresh.code !== held.code && (fresh.severity === 'error' || isGraver)) return fresh;
  const { condition, grant } = facts;
  if (fresh?.code === held.code) return { ...fresh, since: held.since };
  return matchesCondition(held, condition) ? toNotice(held.code, condition, grant, held.since) : held;
}

function priorityOf({ code }: Notice): number {
  return subjectNotices[code]?.priority ?? -1;
}

/** Whether the current condition confirms a notice from before; if it does not, `status` leaves the notice out. */
export function matchesCondition(
  { code, severity }: Notice,
  condition: SubjectCondition | null,
): condition is SubjectCondition {
  if (severity !== 'warning' || condition?.severity !== 'warning') return false;
  return isReminder({ code }) || isReminder(condition) ? code === condition.code : true;
}

/**
 * Whether a notice of the hub stays open although its problem is not seen, because the hub has not run for long enough.
 * @param running how long this run of the hub has lasted, in ms
 */
export function isKeptAfterRestart(code: NoticeCode, running: number): boolean {
  const { delay = 0, keptAfterRestart = delay } = hubConditions[code] ?? {};
  return running < keptAfterRestart;
}

/** The message for a notice that is over. @param facts undefined if its subject was removed */
export function resolvedMessage(notice: Notice, facts: SubjectNoticeInput | undefined): string {
  const { connection, appliance, message } = notice;
  const name = appliance ?? connection;
  if (name === null) return `Resolved: ${message}`;
  if (facts === undefined) return `${name} was removed from the hub`;
  const { title: subject } = facts;
  if (facts.state === 'active' || facts.state === 'retrying')
    return subjectNotices[notice.code]?.reminderOver?.(subject) ?? `${subject} is connected again`;
  return `${subject} no longer needs attention`;
}

/** The report that tests the delivery of notices. @param since now, RFC 3339 UTC */
export function testReport(since: string): NoticeReport {
  const message = 'This is a test: notices from this hub arrive here';
  const notice = { notice: 'test', severity: 'warning', connection: null, appliance: null, appliances: [] } as const;
  return { status: 'raised', ...notice, message, what_to_do: 'Nothing', since };
}

function isStillOpen(code: NoticeCode, generation: number | null, { state, grant }: SubjectNoticeInput): boolean {
  if (code === 'approval_needed') return false;
  // While a pairing is open, the connection shows it instead of the problem; the notice stays until the pairing
  // succeeds.
  if (grant === null) return code === 'pairing_needed' && state === 'pairing';
  // Refreshes don't end this one. Right after a reboot the age of the login may be unknown.
  if (code === 'login_ending') return grant.remaining === null;
  if (grant.generation !== generation) return false;
  // A grant that is no longer suspended may have an access token that is still valid: then nobody needs to log in.
  return code !== 'pairing_needed' || grant.isFailing || (grant.remaining ?? 0) === 0;
}

/** A token of unknown age counts as ending, because the hub can't issue it. */
function isTokenEnding({ remaining, lifetime }: GrantNoticeInput): boolean {
  return remaining === null || remaining <= lifetime / 10;
}
