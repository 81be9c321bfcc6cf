import type { ProblemCode } from './problem.ts';

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
