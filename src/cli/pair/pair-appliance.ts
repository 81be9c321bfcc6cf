import type { ControlClient } from '../../control/client.ts';
import type { LinkRenewalReason } from '../../core/pairings/pairing-administration.ts';
import { formatDuration } from '../terminal/duration.ts';
import { printJson, printStderr, reportFailure } from '../terminal/output.ts';
import { pairingFailedText, portalUnreachableText, unconfirmedLoginText } from './failure-texts.ts';
import {
  type DisplayedLink,
  type PairingDisplay,
  type PairingFailedMessage,
  type WatchOutcome,
  type WatchStopReason,
  watchPairing,
} from './watch-pairing.ts';

/** How a pairing is to be shown, and for how long. */
export interface PairOptions {
  /** False: only until the link is there. */
  readonly wait: boolean;
  /** Seconds. */
  readonly timeout?: number;
  readonly json?: boolean;
}

/** What a shell gives a program that Ctrl-C ended. */
const EXIT_INTERRUPTED = 130;

/** `latchkey pair NAME` */
export async function pairAppliance(hub: ControlClient, name: string, options: PairOptions): Promise<void> {
  const outcome = await showPairing(hub, await hub.pair(name), name, options);
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
        'the pairing goes on: "latchkey status" shows how it stands, and its link once there is one',
      );
    }
  }
}

/**
 * Says why nothing more is shown of a pairing that goes on, and sets the exit status.
 * @param late what is said if the time was over
 * @param next that it goes on, and how to see more of it
 */
export function reportWatchStopped(outcome: WatchStopReason, late: string, next: string): void {
  switch (outcome.kind) {
    case 'portal_out_of_reach':
      reportFailure(`the portal can't be reached (${outcome.problem ?? 'no answer yet'}); ${next}`);
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
 * Shows a pairing until it has ended, the limits are reached or Ctrl-C comes.
 * @param isOneOfMany whether what is printed for programs names the appliance
 */
export async function showPairing(
  hub: ControlClient,
  pairing: string,
  name: string,
  options: PairOptions,
  isOneOfMany = false,
): Promise<WatchOutcome> {
  using display =
    options.json === true
      ? new JsonDisplay(isOneOfMany ? name : undefined)
      : await createTextDisplay(name, options.wait);
  return await watchPairing(hub, pairing, display, options);
}

/** Loaded only where it is needed: it brings the QR code's encoder with it. */
async function createTextDisplay(name: string, waits: boolean): Promise<PairingDisplay & Disposable> {
  const { TextDisplay } = await import('./text-display.ts');
  return new TextDisplay(name, waits);
}

/** A pairing for programs: one JSON object a line. */
class JsonDisplay implements PairingDisplay, Disposable {
  readonly #applianceMember: { readonly appliance?: string };

  /** @param appliance is named in each line, where one of several is shown */
  constructor(appliance?: string) {
    this.#applianceMember = appliance === undefined ? {} : { appliance };
  }

  portalUnreachable(problem: string, expiresIn: number): void {
    printStderr(portalUnreachableText(problem, expiresIn));
  }

  linkIssued({ authorizeUrl, shortUrl }: DisplayedLink, expiresIn: number, reason: LinkRenewalReason | null): void {
    const short = shortUrl === null ? {} : { short_url: shortUrl };
    const why = reason === null ? {} : { reason };
    printJson({
      event: 'waiting',
      ...this.#applianceMember,
      authorize_url: authorizeUrl,
      ...short,
      expires_in: expiresIn,
      ...why,
    });
  }

  loginUnconfirmed(address: string): void {
    printStderr(unconfirmedLoginText(address));
  }

  paired(scope: string | null): void {
    printJson({ event: 'paired', ...this.#applianceMember, scope });
  }

  failed({ reason }: PairingFailedMessage): void {
    printJson({ event: 'failed', ...this.#applianceMember, reason });
  }

  [Symbol.dispose](): void {}
}
