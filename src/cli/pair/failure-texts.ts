import type { SkipReason } from '../../core/pairings/pairing-batch.ts';
import type { ProblemCode } from '../../core/reports/problem.ts';
import { formatDuration } from '../terminal/duration.ts';
import { printable } from '../terminal/output.ts';

/** Says that a pairing failed, with the hub's message about the cause and what to do. */
export function pairingFailedText(name: string, { message }: { readonly message: string }): string {
  return `${name} was not paired: ${printable(message)}`;
}

/** Says that the portal is unreachable, and for how many seconds the hub keeps trying. */
export function portalUnreachableText(problem: string, expiresIn: number): string {
  return `the portal is unreachable (${printable(problem)}): check the internet connection; the hub keeps trying for ${formatDuration(expiresIn)}`;
}

/** Says that somebody has logged in, but that the portal has not confirmed it. */
export function unconfirmedLoginText(address: string): string {
  return `somebody at ${printable(address)} has logged in, but the portal has not confirmed that login: if you know who it was, confirm it on the hub's page within a minute ("latchkey setup-code" shows the page's address and code)`;
}

/** Short texts: why an appliance was not connected, or its token not refreshed. */
export const SHORT_REASONS: Readonly<Record<SkipReason | ProblemCode, string>> = {
  refused_by_user: 'refused at the login',
  expired: 'nobody logged in',
  replaced: 'a newer pairing replaced it',
  cancelled: 'cancelled',
  portal_rejected: 'the portal rejected it',
  foreign_origin: 'the portal gave wrong addresses',
  code_refused: 'the portal rejected the login',
  answer_lost: "the portal's answer was lost",
  misconfigured: 'wrong portal settings',
  client_unknown: 'the portal does not know the hub',
  waiting_for_approval: 'waiting for approval',
  not_begun: 'not started',
  portal_unreachable: 'the portal was unreachable',
  portal_deferred: 'the portal asked to wait',
  clock_unknown: 'the clock was wrong',
  store_unwritable: 'the hub could not save it',
  database_unavailable: 'the hub could not reach its database',
  refused: 'the portal rejected the grant',
};

/** Says why the login of a pasted address yielded nothing, while its pairing goes on. */
export function loginFailedText(reason: SkipReason): string {
  return `the login did not succeed (${SHORT_REASONS[reason]}): log in again, with the newest link of the pairing`;
}
