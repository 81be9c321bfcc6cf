import type { ControlClient } from '../../control/client.ts';
import { formatDuration } from '../../core/clock.ts';
import type { PairingFailureReason } from '../../core/pairings/pairing.ts';
import type { LinkRenewalReason } from '../../core/pairings/pairing-administration.ts';
import { printJson, printStderr, reportFailure } from '../terminal/output.ts';
import { isInteractive } from '../terminal/prompt.ts';
import { loginFailedText, pairingFailedText, portalUnreachableText, unconfirmedLoginText } from './failure-texts.ts';
import {
  type LinkMessage,
  type PairingDisplay,
  type PairingFailedMessage,
  type WatchOutcome,
  type WatchStopReason,
  watchPairing,
} from './watch-pairing.ts';

/** How to show a pairing, and for how long. */
export interface PairOptions {
  /** False: only until there is a link. */
  readonly wait: boolean;
  /** Seconds. */
  readonly timeout?: number;
  readonly json?: boolean;
}

/** The exit status that shells report for a program that Ctrl-C ended. */
const EXIT_INTERRUPTED = 130;

/** Names the connection in the JSON lines of a batch. */
export interface BatchNames {
  readonly connection: string;
  /** Whether it is not the own connection of an appliance, which has its name. */
  readonly isShared: boolean;
}

/** `latchkey pair NAME` */
export async function pairConnection(hub: ControlClient, name: string, options: PairOptions): Promise<void> {
  const { pairing } = await hub.request('pair', { name });
  const outcome = await showPairing(hub, pairing, name, options);
  switch (outcome.kind) {
    case 'paired':
    case 'link_shown':
      return;
    case 'failed':
      return reportFailure(pairingFailedText(name, outcome));
    default: {
      const late = `${name} was not paired within ${formatDuration(options.timeout ?? 0)}`;
      return reportWatchStopped(
        outcome,
        late,
        'the pairing continues: "latchkey status" shows its state, and the link as soon as there is one',
      );
    }
  }
}

/**
 * Reports why the command stopped watching a pairing that continues, and sets the exit status.
 * @param late the message if the time limit was reached
 * @param next says that the pairing continues, and how to watch it
 */
export function reportWatchStopped(outcome: WatchStopReason, late: string, next: string): void {
  switch (outcome.kind) {
    case 'portal_out_of_reach':
      reportFailure(`the portal is unreachable (${outcome.problem ?? 'no response yet'}); ${next}`);
      break;
    case 'timed_out':
      reportFailure(`${late}; ${next}`);
      break;
    case 'interrupted':
      reportFailure(`stopped watching; ${next}`, EXIT_INTERRUPTED);
      break;
  }
}

/**
 * Shows a pairing until it has ended, a limit is reached or the user presses Ctrl-C.
 * @param names for JSON lines, if several connections are paired
 */
export async function showPairing(
  hub: ControlClient,
  pairing: string,
  name: string,
  options: PairOptions,
  names?: BatchNames,
): Promise<WatchOutcome> {
  using display = options.json === true ? new JsonDisplay(names) : await createTextDisplay(hub, name, options.wait);
  return await watchPairing(hub, pairing, display, options);
}

/** Loads the display only if it is needed, because it imports the QR code encoder. */
async function createTextDisplay(
  hub: ControlClient,
  name: string,
  waits: boolean,
): Promise<PairingDisplay & Disposable> {
  const [{ TextDisplay }, { AddressPrompt }] = await Promise.all([
    import('./text-display.ts'),
    import('./address-prompt.ts'),
  ]);
  const prompt = waits && isInteractive() ? new AddressPrompt(hub, name) : null;
  return new TextDisplay(name, await portalOf(hub, name), waits, prompt);
}

/** The name of a connection's portal; null if all connections have the same. */
async function portalOf(hub: ControlClient, name: string): Promise<string | null> {
  const { connections } = await hub.request('status');
  const isOnly = new Set(connections.map(({ portal }) => portal)).size <= 1;
  return isOnly ? null : (connections.find((one) => one.name === name)?.portal ?? null);
}

/** Prints a pairing for programs: one JSON object per line. */
class JsonDisplay implements PairingDisplay, Disposable {
  readonly #nameMembers: { readonly appliance?: string; readonly connection?: string };

  /** @param names for each line, if several connections are paired */
  constructor(names?: BatchNames) {
    const appliance = names === undefined || names.isShared ? {} : { appliance: names.connection };
    this.#nameMembers = names === undefined ? {} : { ...appliance, connection: names.connection };
  }

  portalUnreachable(problem: string, expiresIn: number): void {
    printStderr(portalUnreachableText(problem, expiresIn));
  }

  linkIssued(
    { event, authorize_url, user_code, short_url, expires_in }: LinkMessage,
    reason: LinkRenewalReason | null,
  ) {
    const why = reason === null ? {} : { reason };
    printJson({ event, ...this.#nameMembers, authorize_url, user_code, short_url, expires_in, ...why });
  }

  loginUnconfirmed(address: string): void {
    printStderr(unconfirmedLoginText(address));
  }

  loginFailed(reason: PairingFailureReason): void {
    printStderr(loginFailedText(reason));
  }

  paired(scope: string | null, missing: readonly string[]): void {
    printJson({ event: 'paired', ...this.#nameMembers, scope, ...(missing.length > 0 && { missing_scope: missing }) });
  }

  failed({ reason }: PairingFailedMessage): void {
    printJson({ event: 'failed', ...this.#nameMembers, reason });
  }

  [Symbol.dispose](): void {}
}
