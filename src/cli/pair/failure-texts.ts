import type { FailureReason } from '../../core/pairings/pairing.ts';
import type { LeftOutReason } from '../../core/pairings/round.ts';
import type { ProblemCode } from '../../core/reports/problem.ts';
import { formatDuration } from '../terminal/duration.ts';
import { printable } from '../terminal/output.ts';

/** Why a pairing failed, in plain words, and what to do next. */
export function pairingFailure(reason: FailureReason, appliance: string): string {
  const again = `"latchkey pair ${appliance}"`;
  switch (reason) {
    case 'refused_by_user':
      return `${appliance} was not paired: the access was refused at the login; run ${again} again and allow it`;
    case 'expired':
      return `${appliance} was not paired: nobody logged in before the pairing expired; run ${again} again`;
    case 'replaced':
      return `${appliance} was not paired by this link: another pairing of it was started since; log in with that one's link, which "latchkey status" shows`;
    case 'cancelled':
      return `${appliance} was not paired: the pairing was cancelled, because the appliance was unpaired or removed; run ${again} to start anew`;
    case 'portal_rejected':
      return `${appliance} was not paired: the portal rejected the hub's request; check the portal's base_url and scope, see the hub's log, and run ${again} again`;
    case 'foreign_origin':
      return `${appliance} was not paired: the portal named addresses that are not its own, so the hub sent it nothing; check base_url and frontend_url in the configuration`;
    case 'code_refused':
      return `${appliance} was not paired: the portal refused the authorization code of the login; run ${again} again`;
    case 'answer_lost':
      return `${appliance} was not paired: the portal's answer was lost on the way; check the network and run ${again} again`;
    case 'misconfigured':
      return `${appliance} was not paired: the portal does not accept the hub's client_id and client_secret; correct them in the configuration, restart the hub and run ${again} again`;
  }
}

/** That the portal is out of reach, and for how many seconds the hub goes on trying. */
export function outOfReach(problem: string, expiresIn: number): string {
  return `the portal can't be reached (${printable(problem)}); the hub goes on trying for ${formatDuration(expiresIn)}`;
}

/** Somebody has logged in, and the portal does not tell of it. */
export function unconfirmedLogin(address: string): string {
  return `somebody at ${printable(address)} has logged in, but the portal has not confirmed that login: if you know whose it is, confirm it on the hub's page within a minute ("latchkey setup-code" opens the page)`;
}

/** Why an appliance was not connected, or its token not refreshed, in a few words. */
export const SHORT_REASONS: Readonly<Record<LeftOutReason | ProblemCode, string>> = {
  refused_by_user: 'refused at the login',
  expired: 'nobody logged in',
  replaced: 'another pairing took its place',
  cancelled: 'cancelled',
  portal_rejected: 'the portal rejected it',
  foreign_origin: 'the portal named foreign addresses',
  code_refused: 'the portal refused the login',
  answer_lost: "the portal's answer was lost",
  misconfigured: 'the hub is misconfigured',
  waiting_for_approval: 'waiting for approval',
  not_begun: 'not begun',
  portal_unreachable: 'the portal was out of reach',
  portal_deferred: 'the portal asked to wait',
  clock_unknown: 'the clock was wrong',
  store_unwritable: 'the store could not be written',
  refused: 'the portal refused the grant',
};
