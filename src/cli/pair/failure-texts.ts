import type { SkipReason } from '../../core/pairings/pairing-batch.ts';
import type { ProblemCode } from '../../core/reports/problem.ts';
import { formatDuration } from '../terminal/duration.ts';
import { printable } from '../terminal/output.ts';

/** That a pairing failed, why, and what to do next. */
export function pairingFailedText(appliance: string, { message }: { readonly message: string }): string {
  return `${appliance} was not paired: ${printable(message)}`;
}

/** That the portal is out of reach, and for how many seconds the hub goes on trying. */
export function portalUnreachableText(problem: string, expiresIn: number): string {
  return `the portal can't be reached (${printable(problem)}); the hub goes on trying for ${formatDuration(expiresIn)}`;
}

/** Somebody has logged in, and the portal does not tell of it. */
export function unconfirmedLoginText(address: string): string {
  return `somebody at ${printable(address)} has logged in, but the portal has not confirmed that login: if you know whose it is, confirm it on the hub's page within a minute ("latchkey setup-code" opens the page)`;
}

/** Why an appliance was not connected, or its token not refreshed, in a few words. */
export const SHORT_REASONS: Readonly<Record<SkipReason | ProblemCode, string>> = {
  refused_by_user: 'refused at the login',
  expired: 'nobody logged in',
  replaced: 'another pairing took its place',
  cancelled: 'cancelled',
  portal_rejected: 'the portal rejected it',
  foreign_origin: 'the portal named foreign addresses',
  code_refused: 'the portal refused the login',
  answer_lost: "the portal's answer was lost",
  misconfigured: 'the hub is misconfigured',
  client_unknown: 'the portal does not know the hub',
  waiting_for_approval: 'waiting for approval',
  not_begun: 'not begun',
  portal_unreachable: 'the portal was out of reach',
  portal_deferred: 'the portal asked to wait',
  clock_unknown: 'the clock was wrong',
  store_unwritable: 'the store could not be written',
  refused: 'the portal refused the grant',
};
