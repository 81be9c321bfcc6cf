import { encodeQr } from '../../system/qr-code.ts';
import { DEFAULT_COLUMNS, wrapText } from './table.ts';

/** What decides how a QR code is drawn; `process.stdout` has these members. */
export interface TerminalCapabilities {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
  hasColors?(): boolean;
}

/** Black on white for every theme: colours from the fixed part of the 256 colours, which no theme changes. */
const BLACK_ON_WHITE = '\u001b[38;5;16;48;5;231m';
const RESET = '\u001b[0m';

/** ISO/IEC 18004 requires a quiet zone of four modules; if the terminal is narrow, two are enough in practice. */
const QUIET_ZONES = [4, 2];

/**
 * Draws a QR code with half blocks. Without colours it draws the light modules: this is correct on a dark terminal, and
 * inverted on a light one, which phones can read too.
 * @param below lines that must be visible below it
 * @returns null if the terminal is too small to show all of it at once, or the text is too long for a QR code
 */
export function renderQrCode(text: string, screen: TerminalCapabilities, below = 0): string | null {
  const { columns, rows } = availableSpace(screen);
  for (const border of QUIET_ZONES) {
    const code = encodeQr(text, { ecc: 'L', border });
    if (code === null) return null;
    const { data, size } = code;
    if (size > columns || lineCount(size) + below > rows) continue;
    const coloured = screen.isTTY === true && screen.hasColors?.() === true;
    return coloured
      ? drawHalfBlocks(data, true)
          .map((line) => BLACK_ON_WHITE + line + RESET)
          .join('\n')
      : drawHalfBlocks(data, false).join('\n');
  }
  return null;
}

/**
 * Draws a QR code with half blocks for paper: it draws the dark modules.
 * @returns null if the text is too long for a QR code
 */
export function renderQrCodeForPaper(text: string): string | null {
  const code = encodeQr(text, { ecc: 'M', border: Math.min(...QUIET_ZONES) });
  return code === null ? null : drawHalfBlocks(code.data, true).join('\n');
}

/** Why {@link renderQrCode} returned null, and the size that it needs, in parentheses. */
export function missingQrCodeText(text: string, screen: TerminalCapabilities, below = 0): string {
  const { columns } = availableSpace(screen);
  const size = encodeQr(text, { ecc: 'L', border: Math.min(...QUIET_ZONES) })?.size;
  if (size === undefined) return wrapText('(the link is too long for a QR code)', columns).join('\n');
  const why =
    size > columns
      ? `(the terminal is too narrow for the QR code, which needs ${size} columns)`
      : `(the terminal is not high enough for the QR code, which needs ${lineCount(size) + below + 1} lines)`;
  return wrapText(why, columns).join('\n');
}

/** The terminal without the line of the cursor. */
function availableSpace({ isTTY, columns, rows }: TerminalCapabilities): {
  columns: number;
  rows: number;
} {
  if (isTTY !== true) return { columns: Number.POSITIVE_INFINITY, rows: Number.POSITIVE_INFINITY };
  return { columns: columns || DEFAULT_COLUMNS, rows: (rows || Number.POSITIVE_INFINITY) - 1 };
}

/** The number of lines of half blocks for a number of modules. */
function lineCount(modules: number): number {
  return Math.ceil(modules / 2);
}

/** @param ink which modules are drawn as blocks: true for the dark ones, false for the light ones */
function drawHalfBlocks(modules: readonly (readonly boolean[])[], ink: boolean): string[] {
  const lines: string[] = [];
  for (let y = 0; y < modules.length; y += 2) {
    const upper = modules[y] ?? [];
    const lower = modules[y + 1] ?? upper.map(() => false);
    lines.push(upper.map((dark, x) => halfBlock(dark === ink, lower[x] === ink)).join(''));
  }
  return lines;
}

function halfBlock(upper: boolean, lower: boolean): string {
  if (upper) return lower ? '█' : '▀';
  return lower ? '▄' : ' ';
}
