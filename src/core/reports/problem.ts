import type { Instant } from '../clock.ts';
import { applyInstruction, type CredentialLocation } from '../portal.ts';

/** What is wrong with an appliance's grant, as `status` names it. */
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

/** What a problem is judged as: `misconfigured` differs while nobody knows yet whether the credentials were corrected. */
export type ProblemConditionCode = ProblemCode | 'credentials_untried';

/** A problem in words for people: `since` is when it began. */
export interface Problem {
  readonly code: ProblemCode;
  readonly message: string;
  readonly since: Instant;
  /** It is what the last run of the hub has left, and is tried within seconds; left out of all others. */
  readonly isUntried?: true;
}

/**
 * What a person can do about an appliance's problem, as a sentence without a full stop.
 * @param page the address of the appliance's own page
 * @param credentialLocation where the hub's credentials at the portal are corrected
 */
export function whatToDo(
  code: ProblemConditionCode,
  appliance: string,
  page: string,
  credentialLocation: CredentialLocation,
): string {
  switch (code) {
    case 'portal_unreachable':
      return "Check the hub's internet connection; the hub goes on trying";
    case 'portal_deferred':
      return 'Nothing: the hub tries again when the portal lets it';
    case 'portal_rejected':
      return "Check the portal's base_url and any proxy or firewall on the way; the hub goes on trying";
    case 'answer_lost':
      // Not "latchkey refresh": each further use of the old refresh token may make the portal end the grant.
      return 'Nothing yet: the hub tries again when that risks least, and says so if somebody must log in';
    case 'credentials_untried':
      return 'Nothing yet: within seconds the hub knows whether the portal accepts them';
    case 'misconfigured':
      return `Correct the one that is wrong, and ${applyInstruction(credentialLocation)}`;
    case 'clock_unknown':
      return "Let the hub's clock be set (timedatectl status); the hub goes on trying";
    case 'store_unwritable':
      return "Make room on the disk that holds the hub's state_dir, or replace it; the hub then goes on by itself";
    case 'refused':
      return `Log in again to connect ${appliance}: open ${page} or run "latchkey pair ${appliance}"`;
  }
}
