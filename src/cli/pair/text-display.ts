import { stripVTControlCharacters } from 'node:util';
import { formatDuration } from '../../core/clock.ts';
import type { PairingFailureReason } from '../../core/pairings/pairing.ts';
import type { LinkRenewalReason } from '../../core/pairings/pairing-administration.ts';
import { type UrlAddressScope, urlAddressScope } from '../../system/addresses.ts';
import { systemClock, systemTimers } from '../../system/clock.ts';
import { canRedraw, print, printable, printStderr } from '../terminal/output.ts';
import { missingQrCodeText, renderQrCode, type TerminalCapabilities } from '../terminal/qr-code.ts';
import { DEFAULT_COLUMNS, wrapText } from '../terminal/table.ts';
import type { AddressPrompt } from './address-prompt.ts';
import { loginFailedText, portalUnreachableText, unconfirmedLoginText } from './failure-texts.ts';
import type { LinkMessage, PairingDisplay } from './watch-pairing.ts';

const REASON_TEXTS: Readonly<Record<LinkRenewalReason, string>> = {
  link_ended: 'the previous link is no longer valid',
  address_changed:
    "the hub's address has changed; you can still complete a login that you started with the previous link",
};

/** Shows a pairing to people: the link and its QR code, the time left, and the result. */
export class TextDisplay implements PairingDisplay, Disposable {
  readonly #name: string;
  readonly #portal: string | null;
  readonly #waitsForLogin: boolean;
  readonly #countdownLine = new CountdownLine();
  readonly #addressPrompt: AddressPrompt | null;
  #last: LinkMessage | null = null;

  /**
   * @param portal where the person logs in; null if there is only one
   * @param waitsForLogin whether the command waits until somebody has logged in
   * @param addressPrompt asks for the address on which the browser ended; null if there is no terminal for it
   */
  constructor(name: string, portal: string | null, waitsForLogin: boolean, addressPrompt: AddressPrompt | null) {
    this.#name = name;
    this.#portal = portal;
    this.#waitsForLogin = waitsForLogin;
    this.#addressPrompt = addressPrompt;
  }

  portalUnreachable(problem: string, expiresIn: number): void {
    this.#countdownLine.clear();
    printStderr(portalUnreachableText(problem, expiresIn));
  }

  linkIssued(link: LinkMessage, reason: LinkRenewalReason | null): void {
    const { expires_in: expiresIn } = link;
    const renewal = reason === null ? '' : ` with this new link (${REASON_TEXTS[reason]})`;
    const where = this.#portal === null ? '' : ` at ${printable(this.#portal)}`;
    const heading = `Log in${where} to connect ${this.#name}${renewal}:`;
    const { text, hasShortCode } = renderLink(heading, link, process.stdout);
    // A change of the short link alone does not matter unless the QR code is that of the short link.
    const isKnown =
      link.authorize_url === this.#last?.authorize_url && link.user_code === this.#last.user_code && !hasShortCode;
    this.#last = link;
    if (isKnown) return;
    this.#countdownLine.clear();
    print(text);
    if (link.accepts_address) this.#addressPrompt?.open((message) => this.#countdownLine.printAbove(message));
    if (this.#waitsForLogin) this.#countdownLine.start(expiresIn, link.is_renewed ? 'a new code comes' : 'expires');
    else printStderr(`the link is valid for ${formatDuration(expiresIn)}; "latchkey status" shows the pairing's state`);
  }

  loginUnconfirmed(address: string): void {
    this.#countdownLine.clear();
    printStderr(unconfirmedLoginText(address));
  }

  loginFailed(reason: PairingFailureReason): void {
    this.#countdownLine.printAbove(loginFailedText(reason));
  }

  paired(scope: string | null, missing: readonly string[]): void {
    this.#countdownLine.clear();
    print(`${this.#name} is connected${scope === null ? '' : `, scope ${printable(scope)}`}`);
    if (missing.length === 0) return;
    const names = printable(missing.join(', '));
    printStderr(`the portal did not grant ${names}: if ${this.#name} needs that, log in again and allow it`);
  }

  failed(): void {
    this.#countdownLine.clear();
  }

  [Symbol.dispose](): void {
    this.#addressPrompt?.[Symbol.dispose]();
    this.#countdownLine.clear();
  }
}

/** Moves to the beginning of the line and erases everything after it. */
const CLEAR_LINE = '\r\u001b[J';

/** The hint below the QR code of a short link. */
const REACH_HINTS: Readonly<Record<UrlAddressScope, string>> = {
  machine: 'The link and the QR code work only on this machine.',
  home: 'The link and the QR code work only in this home network.',
  anywhere: 'The QR code is for a phone in this home network; the link works anywhere.',
};

/** Above a user code (RFC 8628, 3.3). */
const ENTER_CODE = 'Enter this code there:';
const COMPARE_CODE = 'Check that the page there shows this code:';

/** A link as text for people. The caller may print one more line below it. */
interface RenderedLink {
  readonly text: string;
  /** Whether the QR code is that of the short link. */
  readonly hasShortCode: boolean;
}

/**
 * Renders a link with a QR code that fits on the terminal: the code of the link itself, which works anywhere, or that
 * of the short link. The link stays on one line, even if the terminal wraps it, so that it can be copied.
 * @param heading says what the link is for
 */
export function renderLink(
  heading: string,
  {
    authorize_url: authorizeUrl,
    short_url: shortUrl,
    user_code: userCode,
    contains_user_code: containsUserCode,
  }: Pick<LinkMessage, 'authorize_url' | 'short_url' | 'user_code' | 'contains_user_code'>,
  screen: TerminalCapabilities,
): RenderedLink {
  const login =
    userCode === undefined ? '' : `\n${containsUserCode ? COMPARE_CODE : ENTER_CODE} ${printable(userCode)}\n`;
  const link = `${heading}\n\n  ${printable(authorizeUrl)}\n${login}`;
  const code = renderQrCode(authorizeUrl, screen);
  const full = code === null ? null : `${link}\n${code}\n`;
  if (full !== null && fitsOnTerminal(full, screen)) return { text: full, hasShortCode: false };
  const hint = wrapText(REACH_HINTS[urlAddressScope(authorizeUrl)], screen.columns || DEFAULT_COLUMNS);
  const shortCode = shortUrl === undefined ? null : renderQrCode(shortUrl, screen, hint.length);
  // The QR code comes last: it is useless unless all of it is visible, and a link that has scrolled up can still be
  // copied.
  const short = shortCode === null ? null : `${link}\n${shortCode}\n${hint.join('\n')}`;
  if (short !== null && (code === null || fitsOnTerminal(short, screen))) return { text: short, hasShortCode: true };
  if (code !== null) return { text: `${code}\n\n${link}`, hasShortCode: false };
  const why =
    shortUrl === undefined ? missingQrCodeText(authorizeUrl, screen) : missingQrCodeText(shortUrl, screen, hint.length);
  return { text: `${link}\n${why}`, hasShortCode: false };
}

function fitsOnTerminal(text: string, { isTTY, columns, rows }: TerminalCapabilities): boolean {
  if (isTTY !== true || !rows) return true;
  const lines = text
    .split('\n')
    .map((line) => Math.ceil(stripVTControlCharacters(line).length / (columns || DEFAULT_COLUMNS)));
  return lines.reduce((sum, height) => sum + Math.max(1, height), 0) + 1 <= rows;
}

/** "waiting for login … expires in 14:59 min" on standard error: a countdown on a terminal, printed once elsewhere. */
class CountdownLine {
  readonly #clock = systemClock('');
  #stopTimer: (() => void) | null = null;

  /** @param expiresIn seconds. @param then what happens after them */
  start(expiresIn: number, then: string): void {
    if (!canRedraw(process.stderr)) {
      printStderr(`waiting for login, ${then} in ${formatDuration(expiresIn)}`);
      return;
    }
    const deadline = this.#clock.now().uptime + 1000 * expiresIn;
    const tick = () => {
      const left = formatCountdown(Math.round((deadline - this.#clock.now().uptime) / 1000));
      const text = `waiting for login … ${then} in ${left}`;
      // A line that the terminal wraps could not be erased.
      process.stderr.write(CLEAR_LINE + (text.length < (process.stderr.columns || DEFAULT_COLUMNS) ? text : left));
      this.#stopTimer = systemTimers.after(1000, tick);
    };
    tick();
  }

  /** Prints a line on standard error; a countdown continues below it. */
  printAbove(text: string): void {
    if (this.#stopTimer !== null) process.stderr.write(CLEAR_LINE);
    printStderr(text);
  }

  /** Erases the line. */
  clear(): void {
    if (this.#stopTimer === null) return;
    this.#stopTimer();
    this.#stopTimer = null;
    process.stderr.write(CLEAR_LINE);
  }
}

/** `14:59 min`, or seconds in the last two minutes. */
function formatCountdown(seconds: number): string {
  if (seconds < 120 || seconds >= 3600) return formatDuration(seconds);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')} min`;
}
