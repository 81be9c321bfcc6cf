import type { LostAnswerRetry } from '../../../src/core/grants/login-end.ts';
import type { TableDefect } from './grant-table.ts';

/** A deliberate defect that the check must find. */
export type Defect =
  | TableDefect
  | 'portal_client_ignores_deadline'
  | 'news_applied_over_refresh'
  | 'nothing_is_put_back'
  | 'late_tokens_are_kept';

/** What may go wrong. */
type Fault = 'pause' | 'late_write' | 'kill' | 'disconnect' | 'promotion' | 'lost_answer' | 'unreachable';

/** What a check tries. */
export interface LeaseScenario {
  readonly faults: readonly Fault[];
  /** How many faults there are in one execution. */
  readonly maxFaults: number;
  /** How often time passes, each time until the next moment that matters. */
  readonly maxAdvances: number;
  /** How often appliances ask for a refresh, at either hub. */
  readonly maxRequests: number;
  /** How often an appliance reports the access token as refused by the cloud. */
  readonly maxRejections: number;
  /** How often the login of another program is imported, and how often the connection is unpaired, at either hub. */
  readonly maxImports: number;
  readonly maxUnpairs: number;
  /** How many answers of the database come after other steps. */
  readonly maxSlowAnswers: number;
  /** The most commits that a promotion loses. */
  readonly maxLostCommits: number;
  readonly retryLostAnswer: LostAnswerRetry;
  /** Lifetime of access tokens, and for how long a portal repeats an answer; in ms. */
  readonly lifetime: number;
  readonly grace: number;
  /** Steps by which each execution begins; none if left out. */
  readonly opening?: readonly string[];
  readonly defects?: readonly Defect[];
}

/** Nothing goes wrong, and time passes twice: each hub may refresh the grant once. */
export const QUIET: LeaseScenario = {
  faults: [],
  maxFaults: 0,
  maxAdvances: 2,
  maxRequests: 0,
  maxRejections: 0,
  maxSlowAnswers: 0,
  maxImports: 0,
  maxUnpairs: 0,
  maxLostCommits: 0,
  retryLostAnswer: 'late',
  lifetime: 600_000,
  grace: 0,
};
