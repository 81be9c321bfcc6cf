import type { Instant } from '../clock.ts';
import { type CredentialLocation, howToApplyCorrection } from '../portals/identity.ts';

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

/**
 * The code of the condition that a problem becomes. After a start or reload, `misconfigured` becomes
 * `credentials_untried` until the hub has tried the credentials, which may have been corrected.
 */
export type ProblemConditionCode = ProblemCode | 'credentials_untried';

/** A problem with a message for people; `since` is when it began. */
export interface Problem {
  readonly code: ProblemCode;
  readonly message: string;
  readonly since: Instant;
  /** The problem is from the last run of the hub, and the hub tries again within seconds; left out otherwise. */
  readonly isUntried?: true;
}

/** What a person can do if the database of the site can't be used. */
export const SITE_AWAY_ADVICE =
  'Check the database server and the network between it and the hub; the hub then continues automatically';

/**
 * What a person can do about an appliance's problem, as a sentence without a full stop.
 * @param page the address of the appliance's own page
 * @param credentialLocation where a person corrects the hub's credentials for the portal
 */
export function whatToDo(
  code: ProblemConditionCode,
  appliance: string,
  page: string,
  credentialLocation: CredentialLocation,
): string {
  switch (code) {
    case 'portal_unreachable':
      return "Check the hub's internet connection; the hub keeps trying";
    case 'portal_deferred':
      return 'Nothing: the hub tries again when the portal allows it';
    case 'portal_rejected':
      return "Check the portal's addresses in the configuration and any proxy or firewall on the way; the hub keeps trying";
    case 'answer_lost':
      // Not "latchkey refresh": each further use of the old refresh token may make the portal end the grant.
      return 'Nothing yet: the hub tries again at the time that is safest for the grant, and reports if somebody must log in';
    case 'credentials_untried':
      return 'Nothing yet: the hub will know within seconds whether the portal accepts its credentials';
    case 'misconfigured':
      return `Compare both with those of the portal, correct the wrong one, and ${howToApplyCorrection(credentialLocation)}`;
    case 'clock_unknown':
      return 'Check with "timedatectl status" that the clock is set automatically; the hub keeps trying';
    case 'store_unwritable':
      return "Free space on the disk that holds the hub's state_dir, or replace the disk; the hub then continues automatically";
    case 'database_unavailable':
      return SITE_AWAY_ADVICE;
    case 'refused':
      return `Log in again to connect ${appliance}: open ${page} or run "latchkey pair ${appliance}"`;
  }
}
