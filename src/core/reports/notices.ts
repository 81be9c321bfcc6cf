import type { ApplianceStatus, HubProblem } from '../administration.ts';
import type { Notice, NoticeCode, NoticeReport } from './notice.ts';
import { type ProblemCode, whatToDo } from './problem.ts';

/** What notices go by: an appliance as `status` has it, and what is known of the grant that is at work for it. */
export interface ApplianceFacts {
  readonly status: Pick<ApplianceStatus, 'name' | 'state' | 'problem' | 'waitingForApproval'>;
  readonly grant: GrantFacts | null;
}

/** Times in ms. */
export interface GrantFacts {
  readonly generation: number;
  /** The last try in this run of the hub brought no new tokens. */
  readonly failing: boolean;
  /** What is left of the token at hand; null where nobody can know. */
  readonly left: number | null;
  readonly lifetime: number;
  /** For how long the grant has had no new token though it was time for one; null where nobody can know. */
  readonly overdue: number | null;
}

/** What is to be told of the hub as a whole: a problem of its own, or what others do to it. `since` in RFC 3339 UTC. */
export interface HubFact {
  readonly code: HubProblem['code'] | 'wrong_setup_codes';
  readonly message: string;
  readonly since: string;
}

/** For how long refreshes have failed, in ms, and since when, in RFC 3339 UTC. */
export interface Failing {
  readonly lasting: number;
  readonly since: string;
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Of what stands longer than the lesser ones the greater is told; what a person must see to is told whatever it follows. */
const WEIGHT: Partial<Record<NoticeCode, number>> = {
  answer_lost: 0,
  misconfigured: 1,
  refresh_failing: 2,
  token_ending: 3,
};

/** How long refreshes must fail in a run of the hub before it counts what was overdue when it began, in ms. */
const START = 10 * MINUTE;
/** A lost answer is told of when the early try with the old refresh token has not helped, in ms. */
const EARLY_REPLAY = MINUTE;

/** For how long a hub's problem must stand until it is a notice, and a notice of before a restart stays before it is over, in ms. */
const LASTING: Record<HubFact['code'], number> = {
  not_announced: 10 * MINUTE,
  hub_id_taken: MINUTE,
  hub_name_claimed: 10 * MINUTE,
  store_changed: 0,
  store_recovered: 0,
  store_unwritable: 0,
  wrong_setup_codes: 0,
};

/** What is known of wrong codes goes with a restart; this is how long a burst lasts without one. In ms. */
const STAYS: Partial<Record<NoticeCode, number>> = { ...LASTING, wrong_setup_codes: 2 * HOUR };

const OF_HUB: Record<HubFact['code'], Pick<Notice, 'severity' | 'what_to_do'>> = {
  hub_id_taken: {
    severity: 'error',
    what_to_do: 'Find the other hub: if one is a copy of the other, switch the copy off and set it up anew',
  },
  hub_name_claimed: {
    severity: 'warning',
    what_to_do:
      'Find the device that has this address, and give it another name or take it off the network; appliances are safe, because they check the pin',
  },
  not_announced: {
    severity: 'warning',
    what_to_do:
      "Look into the hub's log for what keeps mDNS from working; appliances that know the hub's address are served",
  },
  store_changed: {
    severity: 'error',
    what_to_do:
      'Look through the appliances, remove those that are named, add them again and pair them; if somebody had the hub or its card in hand, do what docs/stolen-card.md says',
  },
  store_recovered: {
    severity: 'warning',
    what_to_do:
      'Check the disk or SD card, and replace it where this happens again; "latchkey status" shows what must be paired again',
  },
  store_unwritable: {
    severity: 'error',
    what_to_do: "Make room on the disk that holds the hub's state_dir, or replace it; do not switch the hub off before",
  },
  wrong_setup_codes: {
    severity: 'warning',
    what_to_do:
      'If this was not you, find the device with this address on your network and take it off; nobody can guess the code, and other devices are let in as before',
  },
};

/** Whether a notice is told when it begins and when it is over, and not each day between. */
export function isToldOnce(code: NoticeCode): boolean {
  return code === 'answer_lost' || code === 'store_recovered' || code === 'wrong_setup_codes';
}

/**
 * For how long refreshes have failed, in ms. What was overdue when the hub was started counts when they have gone on failing for a
 * while: a hub that boots before its router knows nothing yet.
 * @param observed for how long this run of the hub has seen them fail
 */
export function failingFor(observed: number, overdue: number | null): number {
  return observed < START ? observed : Math.max(observed, overdue ?? 0);
}

/**
 * The notice of an appliance, the gravest where there are several; null where there is none.
 * @param failing null where refreshes do not fail
 * @param page the address of the installer's page
 */
export function noticeOf({ status, grant }: ApplianceFacts, failing: Failing | null, page: string): Notice | null {
  const { name: appliance, state, problem, waitingForApproval: waiting } = status;
  const of = (
    code: NoticeCode,
    severity: Notice['severity'],
    since: string,
    message: string,
    what_to_do: string,
  ): Notice => ({ code, severity, appliance, message, what_to_do, since });
  const own = `${page}appliances/${appliance}`;

  if (waiting !== undefined) {
    const { comparisonCode: compared, address } = waiting;
    const from = address === null ? '' : ` from ${address}`;
    const message = `${appliance} has introduced itself${from}, with the code ${compared}, and waits for an installer's approval`;
    const advice = `If it is yours, and shows the same code, approve it at ${own} or run "latchkey appliance approve ${appliance} --code ${compared}"; if it is not, remove it there`;
    return of('approval_needed', 'warning', waiting.since, message, advice);
  }
  if (problem === null) return null;
  if (state === 'needs_pairing') {
    const message = `${appliance} is no longer connected: ${lowered(problem.message)}`;
    const advice = `Log in again to connect ${appliance}: open ${own} or run "latchkey pair ${appliance}"`;
    return of('pairing_needed', 'error', problem.since, message, advice);
  }
  if (grant === null || failing === null) return null;
  const advice = adviceFor(problem.code, appliance, own);
  if (problem.code === 'misconfigured') {
    const message = `${appliance} gets no new tokens: ${lowered(problem.message)}`;
    return of('misconfigured', 'error', problem.since, message, advice);
  }
  if (failing.lasting >= HOUR && isEnding(grant)) {
    const ends = grant.left === null || grant.left > 0 ? 'ends soon' : 'has ended';
    const message = `${appliance} has had no new token since ${failing.since}, and the one at hand ${ends}: ${lowered(problem.message)}`;
    return of('token_ending', 'warning', failing.since, message, advice);
  }
  if (failing.lasting >= DAY) {
    const message = `${appliance} has had no new token since ${failing.since}: ${lowered(problem.message)}`;
    return of('refresh_failing', 'warning', failing.since, message, advice);
  }
  if (problem.code !== 'answer_lost' || failing.lasting < EARLY_REPLAY) return null;
  const message = `${appliance} may have to be connected again: ${lowered(problem.message)}`;
  const patience = `Nothing yet: the hub tries again, and says so if somebody must log in; ${own} shows how it stands`;
  return of('answer_lost', 'warning', problem.since, message, patience);
}

/** The notice that is told of the hub. @param lasting for how long this run of the hub has seen it, in ms */
export function noticeOfHub({ code, message, since }: HubFact, lasting: number): Notice | null {
  return lasting < LASTING[code] ? null : { code, appliance: null, message, since, ...OF_HUB[code] };
}

/**
 * The notice that stands, where one stood before. A hub that was started anew has not tried anything yet, and a portal that
 * answers otherwise has not given a token: what is wrong with refreshes is over when there are new tokens, or no grant.
 * @param before the notice, and the generation of the grant that it was of
 * @param now the appliance, undefined where it was removed, and its notice by what is known in this run
 */
export function standing(
  before: { readonly notice: Notice; readonly generation: number | null },
  now: { readonly facts: ApplianceFacts | undefined; readonly notice: Notice | null },
): Notice | null {
  const { facts, notice: fresh } = now;
  const held = facts !== undefined && isHeld(before.notice.code, before.generation, facts) ? before.notice : null;
  if (held === null || fresh === null) return held ?? fresh;
  if (fresh.code === held.code) return { ...fresh, since: held.since };
  const isGraver = (WEIGHT[fresh.code] ?? 4) > (WEIGHT[held.code] ?? -1);
  return fresh.severity === 'error' || isGraver ? fresh : held;
}

/** Whether a notice of the hub as a whole stays though nothing is seen of it: the hub has not run for long enough. @param running in ms */
export function staysAtStart(code: NoticeCode, running: number): boolean {
  return running < (STAYS[code] ?? 0);
}

/** What is told when a notice is over. @param facts undefined where the appliance was removed */
export function endOf({ appliance, message }: Notice, facts: ApplianceFacts | undefined): string {
  if (appliance === null) return `This is over: ${message}`;
  if (facts === undefined) return `${appliance} was removed from the hub`;
  if (facts.status.state === 'active' || facts.status.state === 'retrying') return `${appliance} is connected again`;
  return `${appliance} needs nothing any more`;
}

/** What is sent where somebody tries whether notices arrive. @param since now, RFC 3339 UTC */
export function testReport(since: string): NoticeReport {
  const message = 'This is a test: notices of this hub arrive here';
  const wrong = { notice: 'test', severity: 'warning', appliance: null } as const;
  return { status: 'raised', ...wrong, message, what_to_do: 'Nothing', since };
}

function isHeld(code: NoticeCode, generation: number | null, { status, grant }: ApplianceFacts): boolean {
  if (code === 'approval_needed') return false;
  // An open pairing hides what it is for, until it succeeds.
  if (grant === null) return code === 'pairing_needed' && status.state === 'pairing';
  if (grant.generation !== generation) return false;
  // Of a grant that rested the token at hand may be good still.
  return code !== 'pairing_needed' || grant.failing || (grant.left ?? 0) === 0;
}

/** Where nobody knows how old the token is, nobody can be given it. */
function isEnding({ left, lifetime }: GrantFacts): boolean {
  return left === null || left <= lifetime / 10;
}

function adviceFor(code: ProblemCode, appliance: string, page: string): string {
  const advice = whatToDo(code, appliance);
  return `${advice.charAt(0).toUpperCase()}${advice.slice(1)}; ${page} shows how it stands`;
}

/** A sentence behind a colon. */
function lowered(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
