import { stripVTControlCharacters } from 'node:util';
import { filled } from './filled.ts';
import { printable } from './output.ts';
import type { ShownLink } from './pairing-watch.ts';
import { noRoomFor, qrCode, type Screen } from './qr-code.ts';

/** Below the code of a short link. */
const HINT = 'The code is for a phone in this home network; the link works from anywhere.';

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
  const hint = filled(HINT, screen.columns ?? 80);
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
