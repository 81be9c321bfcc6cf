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
  /** The code of its condition, if that says more than `code`; left out otherwise. */
  readonly condition?: SpecificProblemCode;
}

/**
 * A code that says more of a problem than its {@link ProblemCode}:
 *
 * - `access_token_rejected`: the cloud rejected the access token that an appliance reported, and the hub waits until it
 *   may replace one again;
 * - `credentials_untried`: the portal did not accept the hub's credentials before the last start or reload, and the hub
 *   tries them again within seconds;
 * - `portal_changed`: the portal has not ended the grant, but the configuration no longer has the portal and client_id of
 *   the pairing;
 * - `portal_missing`: the configuration has no portal of the name that the connection uses;
 * - `grant_damaged`, `connection_damaged`: neither has the portal ended the grant, but in the store the grant, or the
 *   connection's own entry, was damaged.
 */
export type SpecificProblemCode =
  | 'access_token_rejected'
  | 'credentials_untried'
  | 'portal_changed'
  | 'portal_missing'
  | 'grant_damaged'
  | 'connection_damaged';
