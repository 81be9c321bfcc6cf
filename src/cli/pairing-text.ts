import type { FreshLinkReason } from '../core/pairing-report.ts';
import { formatDuration } from './duration.ts';
import { notice, print, printable } from './output.ts';
import { outOfReach } from './pairing-failure.ts';
import type { PairingDisplay } from './pairing-watch.ts';
import { noRoomFor, qrCode } from './qr-code.ts';
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
    // The link is one line, whatever the terminal makes of it, so that it can be copied.
    const link = `Log in to connect ${this.#name}${which}:\n\n  ${printable(authorizeUrl)}\n`;
    const code = qrCode(authorizeUrl, process.stdout);
    if (code === null) print(`${link}\n${noRoomFor(authorizeUrl, process.stdout)}`);
    else print(fitTogether(link, code, process.stdout) ? `${link}\n${code}\n` : `${code}\n\n${link}`);
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

/** Whether a link and its code are seen at once, with the line that says what is waited for; else the link is to come last. */
function fitTogether(link: string, code: string, { isTTY, columns = 80, rows }: NodeJS.WriteStream): boolean {
  if (!isTTY || rows === undefined) return true;
  const broken = link.split('\n').reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / columns)), 0);
  return broken + code.split('\n').length + 2 <= rows;
}
