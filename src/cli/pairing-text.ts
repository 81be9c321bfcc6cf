import type { FreshLinkReason } from '../core/pairing-report.ts';
import { formatDuration } from './duration.ts';
import { notice, print, printable } from './output.ts';
import { outOfReach } from './pairing-failure.ts';
import type { PairingDisplay } from './pairing-watch.ts';
import { qrCode, qrCodeWidth } from './qr-code.ts';
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

  /** @param waits whether the command stays until somebody has logged in */
  constructor(name: string, waits: boolean) {
    this.#name = name;
    this.#waits = waits;
  }

  outOfReach(problem: string, expiresIn: number): void {
    this.#waiting.end();
    notice(outOfReach(problem, expiresIn));
  }

  link(authorizeUrl: string, expiresIn: number, reason: FreshLinkReason | null): void {
    this.#waiting.end();
    const which = reason === null ? '' : ` with this fresh link (${WHY[reason]})`;
    print(`Log in to connect ${this.#name}${which}:\n\n  ${printable(authorizeUrl)}\n`);
    const code = qrCode(authorizeUrl, process.stdout);
    if (code === null)
      notice(
        `(the terminal is too narrow for the QR code of this link: it takes ${qrCodeWidth(authorizeUrl)} columns)`,
      );
    else print(`${code}\n`);
    if (this.#waits) this.#waiting.begin(expiresIn);
    else notice(`the link is good for ${formatDuration(expiresIn)}; "latchkey status" shows how the pairing stands`);
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
