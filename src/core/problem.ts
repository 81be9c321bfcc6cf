import type { Instant } from './clock.ts';

/** What is wrong with an appliance's grant, as `status` names it (DESIGN.md, "The command line"). */
export type ProblemCode = (typeof PROBLEM_CODES)[number];

/** All of them. */
export const PROBLEM_CODES = [
  'portal_unreachable',
  'portal_deferred',
  'portal_rejected',
  'answer_lost',
  'misconfigured',
  'clock_unknown',
  'store_unwritable',
  'refused',
] as const;

/** A problem in words for people: `since` is when it began. */
export interface Problem {
  readonly code: ProblemCode;
  readonly message: string;
  readonly since: Instant;
}
