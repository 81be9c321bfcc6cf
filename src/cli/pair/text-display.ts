import { stripVTControlCharacters } from 'node:util';
import type { FreshLinkReason } from '../../core/pairings/pairing-administration.ts';
import { type LinkReach, reachOf } from '../../system/addresses.ts';
import { systemClock, systemTimers } from '../../system/clock.ts';
import { formatDuration } from '../terminal/duration.ts';
import { canRedraw, notice, print, printable } from '../terminal/output.ts';
import { noRoomFor, qrCode, type Screen } from '../terminal/qr-code.ts';
import { wrapText } from '../terminal/table.ts';
import { outOfReach, unconfirmedLogin } from './failure-texts.ts';
import type { PairingDisplay, ShownLink } from './watch.ts';

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

/** Back to the line's beginning, and all behind it erased. */
const CLEAR = '\r\u001b[J';

/** Below the code of a short link. */
const HINTS: Readonly<Record<LinkReach, string>> = {
  machine: 'The link works on this machine alone, and so does the code.',
  home: 'The link and the code are for this home network.',
  anywhere: 'The code is for a phone in this home network; the link works from anywhere.',
};

/** A link as a person sees it; below it there is room for a line that says what is waited for. */
interface LinkOnScreen {
  readonly text: string;
  /** Whether the code is that of the short link. */
  readonly isShort: boolean;
}

/**
 * A link and a QR code as the screen has room for them: the code of the link itself, which serves anywhere, or else that of the
 * short one. The link is one line, whatever the terminal makes of it, so that it can be copied.
 * @param heading what the link is for
 */
export function linkOnScreen(heading: string, { authorizeUrl, shortUrl }: ShownLink, screen: Screen): LinkOnScreen {
  const link = `${heading}\n\n  ${printable(authorizeUrl)}\n`;
  const code = qrCode(authorizeUrl, screen);
  const full = code === null ? null : `${link}\n${code}\n`;
  if (full !== null && isSeenAtOnce(full, screen)) return { text: full, isShort: false };
  const hint = wrapText(HINTS[reachOf(authorizeUrl)], screen.columns ?? 80);
  const shortCode = shortUrl === null ? null : qrCode(shortUrl, screen, hint.length);
  // The code comes last: it is good for nothing unless all of it is seen, and a link that has moved up can still be copied.
  const short = shortCode === null ? null : `${link}\n${shortCode}\n${hint.join('\n')}`;
  if (short !== null && (code === null || isSeenAtOnce(short, screen))) return { text: short, isShort: true };
  if (code !== null) return { text: `${code}\n\n${link}`, isShort: false };
  const why = shortUrl === null ? noRoomFor(authorizeUrl, screen) : noRoomFor(shortUrl, screen, hint.length);
  return { text: `${link}\n${why}`, isShort: false };
}

function isSeenAtOnce(text: string, { isTTY, columns = 80, rows }: Screen): boolean {
  if (isTTY !== true || rows === undefined) return true;
  const lines = text.split('\n').map((line) => Math.ceil(stripVTControlCharacters(line).length / columns));
  return lines.reduce((sum, height) => sum + Math.max(1, height), 0) + 1 <= rows;
}

/** "waiting for login … expires in 14:59 min" on standard error: counted down on a terminal, said once elsewhere. */
class WaitingLine {
  readonly #clock = systemClock('');
  #stop: (() => void) | null = null;

  /** @param expiresIn seconds */
  begin(expiresIn: number): void {
    if (!canRedraw(process.stderr)) {
      notice(`waiting for login, expires in ${formatDuration(expiresIn)}`);
      return;
    }
    const deadline = this.#clock.now().uptime + 1000 * expiresIn;
    const tick = () => {
      const left = countdown(Math.round((deadline - this.#clock.now().uptime) / 1000));
      const text = `waiting for login … expires in ${left}`;
      // A line that the terminal breaks could not be taken away again.
      process.stderr.write(CLEAR + (text.length < (process.stderr.columns || 80) ? text : left));
      this.#stop = systemTimers.after(1000, tick);
    };
    tick();
  }

  /** Takes the line away. */
  end(): void {
    if (this.#stop === null) return;
    this.#stop();
    this.#stop = null;
    process.stderr.write(CLEAR);
  }
}

/** `14:59 min`, and the last two minutes in seconds. */
function countdown(seconds: number): string {
  if (seconds < 120 || seconds >= 3600) return formatDuration(seconds);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')} min`;
}
