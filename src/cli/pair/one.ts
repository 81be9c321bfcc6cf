import type { ControlClient } from '../../control/client.ts';
import type { FreshLinkReason } from '../../core/pairings/pairing-administration.ts';
import { formatDuration } from '../terminal/duration.ts';
import { fail, notice, printJson } from '../terminal/output.ts';
import { failureOf, outOfReach, unconfirmedLogin } from './failure-texts.ts';
import {
  type Failed,
  type PairingDisplay,
  type ShownLink,
  type StoppedWatch,
  type WatchOutcome,
  watchPairing,
} from './watch.ts';

/** How a pairing is to be shown, and for how long. */
export interface PairOptions {
  /** False: only until the link is there. */
  readonly wait: boolean;
  /** Seconds. */
  readonly timeout?: number;
  readonly json?: boolean;
}

/** What a shell gives a program that Ctrl-C ended. */
const INTERRUPTED = 130;

/** `latchkey pair NAME` */
export async function pairOne(hub: ControlClient, name: string, options: PairOptions): Promise<void> {
  const outcome = await watchShown(hub, await hub.pair(name), name, options);
  switch (outcome.kind) {
    case 'paired':
    case 'link_shown':
      return;
    case 'failed':
      return fail(failureOf(name, outcome));
    default: {
      const late = `${name} was not paired within ${formatDuration(options.timeout ?? 0)}`;
      return tellStopped(
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
export function tellStopped(outcome: StoppedWatch, late: string, next: string): void {
  switch (outcome.kind) {
    case 'portal_out_of_reach':
      fail(`the portal can't be reached (${outcome.problem ?? 'no answer yet'}); ${next}`);
      break;
    case 'timed_out':
      fail(`${late}; ${next}`);
      break;
    case 'interrupted':
      fail(`stopped watching; ${next}`, INTERRUPTED);
      break;
  }
}

/**
 * Shows a pairing until it has ended, the limits are reached or Ctrl-C comes.
 * @param isOneOfMany whether what is printed for programs names the appliance
 */
export async function watchShown(
  hub: ControlClient,
  pairing: string,
  name: string,
  options: PairOptions,
  isOneOfMany = false,
): Promise<WatchOutcome> {
  using display =
    options.json === true ? new JsonDisplay(isOneOfMany ? name : undefined) : await textDisplay(name, options.wait);
  return await watchPairing(hub, pairing, display, options);
}

/** Loaded only where it is needed: it brings the QR code's encoder with it. */
async function textDisplay(name: string, waits: boolean): Promise<PairingDisplay & Disposable> {
  const { TextDisplay } = await import('./text-display.ts');
  return new TextDisplay(name, waits);
}

/** A pairing for programs: one JSON object a line. */
class JsonDisplay implements PairingDisplay, Disposable {
  readonly #of: { readonly appliance?: string };

  /** @param appliance is named in each line, where one of several is shown */
  constructor(appliance?: string) {
    this.#of = appliance === undefined ? {} : { appliance };
  }

  outOfReach(problem: string, expiresIn: number): void {
    notice(outOfReach(problem, expiresIn));
  }

  link({ authorizeUrl, shortUrl }: ShownLink, expiresIn: number, reason: FreshLinkReason | null): void {
    const short = shortUrl === null ? {} : { short_url: shortUrl };
    const why = reason === null ? {} : { reason };
    printJson({ event: 'waiting', ...this.#of, authorize_url: authorizeUrl, ...short, expires_in: expiresIn, ...why });
  }

  unconfirmed(address: string): void {
    notice(unconfirmedLogin(address));
  }

  paired(scope: string | null): void {
    printJson({ event: 'paired', ...this.#of, scope });
  }

  failed({ reason }: Failed): void {
    printJson({ event: 'failed', ...this.#of, reason });
  }

  [Symbol.dispose](): void {}
}
