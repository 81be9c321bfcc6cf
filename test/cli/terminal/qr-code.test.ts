import { stripVTControlCharacters } from 'node:util';
import { encode } from 'uqr';
import { expect, test } from 'vitest';
import { renderQrCode, type TerminalCapabilities } from '../../../src/cli/terminal/qr-code.ts';

const link = `https://portal.example/authorize?state=${'x'.repeat(200)}`;
const colours: TerminalCapabilities = { isTTY: true, columns: 120, hasColors: () => true };
const noColours: TerminalCapabilities = { isTTY: true, columns: 120, hasColors: () => false };

/** The drawn modules, true for light, in rows: two rows for each line of text. */
function light(drawn: string, blocksAreLight: boolean): boolean[][] {
  return drawn.split('\n').flatMap((line) => {
    const cells = [...stripVTControlCharacters(line)];
    return [
      cells.map((cell) => '█▀'.includes(cell) === blocksAreLight),
      cells.map((cell) => '█▄'.includes(cell) === blocksAreLight),
    ];
  });
}

test.each([
  ['black on white, whatever the colours of the terminal', colours, false],
  ['light blocks without colours', noColours, true],
  ['light blocks elsewhere than on a terminal', {}, true],
] as const)('a QR code is drawn in %s', (_, screen, blocksAreLight) => {
  const { data, size } = encode(link, { ecc: 'L', border: 4 });
  const drawn = renderQrCode(link, screen) ?? '';
  const seen = light(drawn, blocksAreLight);
  expect(seen.slice(0, size)).toEqual(data.map((row) => row.map((dark) => !dark)));
  for (const row of seen.slice(size)) expect(row).toEqual(row.map(() => true));
  for (const line of drawn.split('\n')) expect(line.startsWith('\u001b[38;5;16;48;5;231m')).toBe(!blocksAreLight);
});

test('a QR code gets a smaller quiet zone on a narrow terminal, and is left out if it does not fit', () => {
  const bare = encode(link, { ecc: 'L', border: 0 }).size;
  const width = (columns: number) => {
    const drawn = renderQrCode(link, { ...noColours, columns });
    return drawn === null ? null : [...(drawn.split('\n')[0] ?? '')].length;
  };
  expect(width(bare + 8)).toBe(bare + 8);
  expect(width(bare + 7)).toBe(bare + 4);
  expect(width(bare + 3)).toBeNull();
  // A terminal on a serial line reports no width.
  expect(width(0)).toBe(width(80));
});
