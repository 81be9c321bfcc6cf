import { stripVTControlCharacters } from 'node:util';
import type { LinkRenewalReason } from '../../core/pairings/pairing-administration.ts';
import { type UrlReach, urlReach } from '../../system/addresses.ts';
import { systemClock, systemTimers } from '../../system/clock.ts';
import { formatDuration } from '../terminal/duration.ts';
import { canRedraw, print, printable, printStderr } from '../terminal/output.ts';
import { missingQrCodeText, renderQrCode, type TerminalCapabilities } from '../terminal/qr-code.ts';
import { wrapText } from '../terminal/table.ts';
import { portalUnreachableText, unconfirmedLoginText } from './failure-texts.ts';
import type { DisplayedLink, PairingDisplay } from './watch-pairing.ts';

const REASON_TEXTS: Readonly<Record<LinkRenewalReason, string>> = {
  link_ended: 'the last one is no longer good',
  address_changed: "the hub's address has changed; whoever is logging in through the last one can go on",
};

/** A pairing for people: the link and its QR code, how long it lives, and how it went. */
export class TextDisplay implements PairingDisplay, Disposable {
  readonly #name: string;
  readonly #waitsForLogin: boolean;
  readonly #countdownLine = new CountdownLine();
  #lastUrl: string | null = null;

  /** @param waitsForLogin whether the command stays until somebody has logged in */
  constructor(name: string, waitsForLogin: boolean) {
    this.#name = name;
    this.#waitsForLogin = waitsForLogin;
  }

  portalUnreachable(problem: string, expiresIn: number): void {
    this.#countdownLine.clear();
    printStderr(portalUnreachableText(problem, expiresIn));
  }

  linkIssued(link: DisplayedLink, expiresIn: number, reason: LinkRenewalReason | null): void {
    const which = reason === null ? '' : ` with this fresh link (${REASON_TEXTS[reason]})`;
    const { text, hasShortCode: isShort } = renderLink(
      `Log in to connect ${this.#name}${which}:`,
      link,
      process.stdout,
    );
    // Another short link alone is nothing new where it is not shown.
    const isKnown = link.authorizeUrl === this.#lastUrl && !isShort;
    this.#lastUrl = link.authorizeUrl;
    if (isKnown) return;
    this.#countdownLine.clear();
    print(text);
    if (this.#waitsForLogin) this.#countdownLine.start(expiresIn);
    else
      printStderr(`the link is good for ${formatDuration(expiresIn)}; "latchkey status" shows how the pairing stands`);
  }

  loginUnconfirmed(address: string): void {
    this.#countdownLine.clear();
    printStderr(unconfirmedLoginText(address));
  }

  paired(scope: string | null): void {
    this.#countdownLine.clear();
    print(`${this.#name} is connected${scope === null ? '' : `, scope ${printable(scope)}`}`);
  }

  failed(): void {
    this.#countdownLine.clear();
  }

  [Symbol.dispose](): void {
    this.#countdownLine.clear();
  }
}

/** Back to the line's beginning, and all behind it erased. */
const CLEAR_LINE = '\r\u001b[J';

/** Below the code of a short link. */
const REACH_HINTS: Readonly<Record<UrlReach, string>> = {
  machine: 'The link works on this machine alone, and so does the code.',
  home: 'The link and the code are for this home network.',
  anywhere: 'The code is for a phone in this home network; the link works from anywhere.',
};

/** A link as a person sees it; below it there is room for a line that says what is waited for. */
interface RenderedLink {
  readonly text: string;
  /** Whether the code is that of the short link. */
  readonly hasShortCode: boolean;
}

/**
 * A link and a QR code as the screen has room for them: the code of the link itself, which serves anywhere, or else that of the
 * short one. The link is one line, whatever the terminal makes of it, so that it can be copied.
 * @param heading what the link is for
 */
export function renderLink(
  heading: string,
  { authorizeUrl, shortUrl }: DisplayedLink,
  screen: TerminalCapabilities,
): RenderedLink {
  const link = `${heading}\n\n  ${printable(authorizeUrl)}\n`;
  const code = renderQrCode(authorizeUrl, screen);
  const full = code === null ? null : `${link}\n${code}\n`;
  if (full !== null && fitsOnTerminal(full, screen)) return { text: full, hasShortCode: false };
  const hint = wrapText(REACH_HINTS[urlReach(authorizeUrl)], screen.columns ?? 80);
  const shortCode = shortUrl === null ? null : renderQrCode(shortUrl, screen, hint.length);
  // The code comes last: it is good for nothing unless all of it is seen, and a link that has moved up can still be copied.
  const short = shortCode === null ? null : `${link}\n${shortCode}\n${hint.join('\n')}`;
  if (short !== null && (code === null || fitsOnTerminal(short, screen))) return { text: short, hasShortCode: true };
  if (code !== null) return { text: `${code}\n\n${link}`, hasShortCode: false };
  const why =
    shortUrl === null ? missingQrCodeText(authorizeUrl, screen) : missingQrCodeText(shortUrl, screen, hint.length);
  return { text: `${link}\n${why}`, hasShortCode: false };
}

function fitsOnTerminal(text: string, { isTTY, columns = 80, rows }: TerminalCapabilities): boolean {
  if (isTTY !== true || rows === undefined) return true;
  const lines = text.split('\n').map((line) => Math.ceil(stripVTControlCharacters(line).length / columns));
  return lines.reduce((sum, height) => sum + Math.max(1, height), 0) + 1 <= rows;
}

/** "waiting for login … expires in 14:59 min" on standard error: counted down on a terminal, said once elsewhere. */
class CountdownLine {
  readonly #clock = systemClock('');
  #stopTimer: (() => void) | null = null;

  /** @param expiresIn seconds */
  start(expiresIn: number): void {
    if (!canRedraw(process.stderr)) {
      printStderr(`waiting for login, expires in ${formatDuration(expiresIn)}`);
      return;
    }
    const deadline = this.#clock.now().uptime + 1000 * expiresIn;
    const tick = () => {
      const left = formatCountdown(Math.round((deadline - this.#clock.now().uptime) / 1000));
      const text = `waiting for login … expires in ${left}`;
      // A line that the terminal breaks could not be taken away again.
      process.stderr.write(CLEAR_LINE + (text.length < (process.stderr.columns || 80) ? text : left));
      this.#stopTimer = systemTimers.after(1000, tick);
    };
    tick();
  }

  /** Takes the line away. */
  clear(): void {
    if (this.#stopTimer === null) return;
    this.#stopTimer();
    this.#stopTimer = null;
    process.stderr.write(CLEAR_LINE);
  }
}

/** `14:59 min`, and the last two minutes in seconds. */
function formatCountdown(seconds: number): string {
  if (seconds < 120 || seconds >= 3600) return formatDuration(seconds);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')} min`;
}
