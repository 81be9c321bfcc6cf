import type { Instant } from '../clock.ts';

/** What is wrong with an appliance's grant, as in `status`. */
export type ProblemCode = (typeof PROBLEM_CODES)[number];

/** All problem codes. */
export const PROBLEM_CODES = [
  'portal_unreachable',
  'portal_deferred',
  'portal_rejected',
  'answer_lost',
  'misconfigured',
  'clock_unknown',
  'store_unwritable',
  'database_unavailable',
  'refused',
] as const;

/** A problem with a message for people; `since` is when it began. */
export interface Problem {
  readonly code: ProblemCode;
  readonly message: string;
  readonly since: Instant;
  /** The problem is from the last run of the hub, and the hub tries again within seconds; left out otherwise. */
  readonly isUntried?: true;
}
