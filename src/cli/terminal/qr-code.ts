import { encodeQr } from '../../system/qr-code.ts';
import { wrapText } from './table.ts';

/** What decides how a QR code is drawn; `process.stdout` fits. */
export interface TerminalCapabilities {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
  hasColors?(): boolean;
}

/** Black on white, whatever the terminal's own colours are (the fixed part of the 256 colours, which no theme changes). */
const BLACK_ON_WHITE = '\u001b[38;5;16;48;5;231m';
const RESET = '\u001b[0m';

/** ISO/IEC 18004 asks for a quiet zone of four modules; two are enough in practice, where the terminal is narrow. */
const QUIET_ZONES = [4, 2];

/**
 * A QR code of half blocks. Where there are no colours, light modules are drawn and dark ones left out: right on a dark
 * terminal, and inverted, which phones read too, on a light one.
 * @param below lines that must be seen with it
 * @returns null where the terminal is too small to show all of it at once, or the text is too long for any
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

/** A QR code of half blocks, for paper: dark modules are drawn. @returns null where the text is too long for any */
export function renderQrCodeForPaper(text: string): string | null {
  const code = encodeQr(text, { ecc: 'M', border: Math.min(...QUIET_ZONES) });
  return code === null ? null : drawHalfBlocks(code.data, true).join('\n');
}

/** Why {@link renderQrCode} gave none, and what it takes, in parentheses. */
export function missingQrCodeText(text: string, screen: TerminalCapabilities, below = 0): string {
  const { columns } = availableSpace(screen);
  const size = encodeQr(text, { ecc: 'L', border: Math.min(...QUIET_ZONES) })?.size;
  if (size === undefined) return wrapText('(the link is too long for a QR code)', columns).join('\n');
  const why =
    size > columns
      ? `(the terminal is too narrow for the QR code: it takes ${size} columns)`
      : `(the terminal is too low for the QR code: it takes ${lineCount(size) + below + 1} lines)`;
  return wrapText(why, columns).join('\n');
}

/** A line is left for the cursor. */
function availableSpace({ isTTY, columns = 80, rows = Number.POSITIVE_INFINITY }: TerminalCapabilities): {
  columns: number;
  rows: number;
} {
  if (isTTY !== true) return { columns: Number.POSITIVE_INFINITY, rows: Number.POSITIVE_INFINITY };
  return { columns, rows: rows - 1 };
}

/** Lines of half blocks that so many modules take. */
function lineCount(modules: number): number {
  return Math.ceil(modules / 2);
}

/** @param ink whether a block is to be a dark module or a light one */
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
