import type { FreshLinkReason } from '../core/pairing-report.ts';
import { formatDuration } from './duration.ts';
import { notice, print, printable } from './output.ts';
import { outOfReach, unconfirmedLogin } from './pairing-failure.ts';
import { linkOnScreen } from './pairing-screen.ts';
import type { PairingDisplay, ShownLink } from './pairing-watch.ts';
import { WaitingLine } from './waiting-line.ts';

const WHY: Readonly<Record<FreshLinkReason, string>> = {
  link_ended: 'the last one is no longer good',
  address_changed: "the hub's address has changed; whoever is logging in through the last one can go on",
};

/** A pairing for people: the link and its QR code, how long it lives, and how it went. */
export class TextDisplay implements PairingDisplay, Disposable {
  readonly #name: string;
  readonly #waits: boolean;
  readonly #waiting = new WaitingLine();
  #shown: string | null = null;

  /** @param waits whether the command stays until somebody has logged in */
  constructor(name: string, waits: boolean) {
    this.#name = name;
    this.#waits = waits;
  }

  outOfReach(problem: string, expiresIn: number): void {
    this.#waiting.end();
    notice(outOfReach(problem, expiresIn));
  }

  link(link: ShownLink, expiresIn: number, reason: FreshLinkReason | null): void {
    const which = reason === null ? '' : ` with this fresh link (${WHY[reason]})`;
    const { text, isShort } = linkOnScreen(`Log in to connect ${this.#name}${which}:`, link, process.stdout);
    // Another short link alone is nothing new where it is not shown.
    const isKnown = link.authorizeUrl === this.#shown && !isShort;
    this.#shown = link.authorizeUrl;
    if (isKnown) return;
    this.#waiting.end();
    print(text);
    if (this.#waits) this.#waiting.begin(expiresIn);
    else notice(`the link is good for ${formatDuration(expiresIn)}; "latchkey status" shows how the pairing stands`);
  }

  unconfirmed(address: string): void {
    this.#waiting.end();
    notice(unconfirmedLogin(address));
  }

  paired(scope: string | null): void {
    this.#waiting.end();
    print(`${this.#name} is connected${scope === null ? '' : `, scope ${printable(scope)}`}`);
  }

  failed(): void {
    this.#waiting.end();
  }

  [Symbol.dispose](): void {
    this.#waiting.end();
  }
}
