import { formatDuration } from '../../core/clock.ts';
import type { SkipReason } from '../../core/pairings/pairing-batch.ts';
import { SHORT_REASONS } from '../connection/history.ts';
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

/** Says why the login of a pasted address yielded nothing, while its pairing goes on. */
export function loginFailedText(reason: SkipReason): string {
  return `the login did not succeed (${SHORT_REASONS[reason]}): log in again, with the newest link of the pairing`;
}
