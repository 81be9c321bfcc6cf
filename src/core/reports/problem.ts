import type { Instant } from '../clock.ts';

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

/** A problem in words for people: `since` is when it began. */
export interface Problem {
  readonly code: ProblemCode;
  readonly message: string;
  readonly since: Instant;
}

/** What a person can do about an appliance's problem. */
export function whatToDo(code: ProblemCode, appliance: string): string {
  switch (code) {
    case 'portal_unreachable':
      return "check the hub's internet connection; the hub goes on trying";
    case 'portal_deferred':
      return 'nothing to do: the hub tries again when the portal lets it';
    case 'portal_rejected':
      return "check the portal's base_url and any proxy or firewall on the way; the hub goes on trying";
    case 'answer_lost':
      return `the hub tries again by itself; "latchkey refresh ${appliance}" tries now`;
    case 'misconfigured':
      return "correct the portal's client_id and client_secret in the configuration and restart the hub";
    case 'clock_unknown':
      return "let the hub's clock be set (timedatectl status); the hub goes on trying";
    case 'store_unwritable':
      return "make room on the disk that holds the hub's state_dir; the hub goes on trying";
    case 'refused':
      return `pair it again: latchkey pair ${appliance}`;
  }
}
