import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decode } from 'fast-png';
import { expect, type TestContext, test } from 'vitest';
import { sharedHousehold, shell } from '../command.ts';

const ZBARIMG = '/usr/bin/zbarimg';
const LINK = 'https://latchkey-1a2b3c.local:8443/p/wallbox';
/** In mm: what a phone reads at a hand's breadth, on a door and by a weak printer. */
const SMALLEST_MODULE = 0.4;
const BY_ADDRESS = 'https://192.168.1.7:8443/p/wallbox';

const hub = sharedHousehold();
const folder = mkdtempSync(join(tmpdir(), 'lk-label-'));
/** What a scanner reads. */
function scanned(file: string): string {
  return execFileSync(ZBARIMG, ['--raw', '-q', file], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
}

function skipWithoutScanner(ctx: TestContext): void {
  if (!existsSync(ZBARIMG)) ctx.skip(`${ZBARIMG} is missing`);
}

test('the label is a picture of 60 by 40 mm at 300 dpi, black on white alone, and a scanner reads the lasting link', (ctx) =>
  label(ctx, 'name.png', [], LINK));

test('--by-address puts the address of today into the QR code', (ctx) =>
  label(ctx, 'address.png', ['--by-address'], BY_ADDRESS));

async function label(ctx: TestContext, name: string, args: string[], link: string): Promise<void> {
  skipWithoutScanner(ctx);
  const file = join(folder, name);
  const { status, stdout, stderr } = await hub.latchkey('pair', 'wallbox', '--print', '--output', file, ...args);
  expect({ status, stderr }).toEqual({ status: 0, stderr: expect.stringContaining(file) });
  for (const text of ['wallbox', 'Cellar hub', LINK, BY_ADDRESS]) expect(stdout).toContain(text);
  expect(scanned(file)).toBe(link);
  const picture = decode(readFileSync(file));
  expect(picture).toMatchObject({ width: 709, height: 472, resolution: { x: 11_811, y: 11_811, unit: 1 } });
  expect(new Set(picture.data)).toEqual(new Set([0, 255]));
  expect(picture.width / 11_811).toBeCloseTo(0.06, 3);
  expect(picture.height / 11_811).toBeCloseTo(0.04, 3);
  expect(moduleOf(file)).toBeGreaterThanOrEqual(SMALLEST_MODULE);
}

/** How wide a module of the label's QR code is, in mm: its quiet zone, from the edge of the picture, is four of them. */
function moduleOf(file: string): number {
  const { width, height, data } = decode(readFileSync(file));
  const edges = Array.from({ length: height }, (_, y) => data.subarray(y * width, (y + 1) * width).indexOf(0));
  // Above are the names.
  return Math.min(...edges.slice(height / 4).filter((x) => x >= 0)) / 4 / 11.811;
}

test('the text has a QR code for paper: dark modules are drawn', async () => {
  const { stdout } = await hub.latchkey('pair', 'wallbox', '--print', '--output', join(folder, 'text.png'));
  const block = stdout.split('\n').filter((line) => /[█▀▄]/.test(line));
  // The finder's upper edge, after a quiet zone of two modules.
  expect(block[0]).toMatch(/^ {2}█▀▀▀▀▀█ .* █▀▀▀▀▀█/);
});

test('a file that is there is written over only with --yes', async () => {
  const file = join(folder, 'kept.png');
  writeFileSync(file, 'precious');
  const refused = await hub.latchkey('pair', 'wallbox', '--print', '--output', file);
  expect(refused).toMatchObject({ status: 1, stdout: '', stderr: expect.stringContaining('--yes') });
  expect(readFileSync(file, 'utf8')).toBe('precious');
  expect((await hub.latchkey('pair', 'wallbox', '--print', '--output', file, '--yes')).status).toBe(0);
  expect(readFileSync(file).subarray(1, 4).toString()).toBe('PNG');
});

test('without --output it lands in the working directory, under the name of the appliance', async () => {
  const place = mkdtempSync(join(tmpdir(), 'lk-label-'));
  const { status, stdout } = await shell(`cd ${place} && $LATCHKEY pair heat-pump --print --json`, hub.env);
  expect(status).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ name: 'heat-pump', file: 'latchkey-heat-pump.png' });
  expect(existsSync(join(place, 'latchkey-heat-pump.png'))).toBe(true);
});

test('a place that can not be written to is said in one line', async () => {
  const { status, stderr } = await hub.latchkey('pair', 'wallbox', '--print', '--output', join(folder, 'no', 'x.png'));
  expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringMatching(/^latchkey: .*--output\n$/) });
});

test('names of any length and letter fit on it', async (ctx) => {
  skipWithoutScanner(ctx);
  hub.household.hub = {
    ...hub.household.hub,
    name: 'Häuschen der Müllers "im Keller" 🏠, hinter der Treppe links unten',
  };
  const name = `a${'b'.repeat(60)}c`;
  const file = join(folder, 'long.png');
  expect((await hub.latchkey('pair', name, '--print', '--output', file)).status).toBe(0);
  expect(scanned(file)).toBe(`https://latchkey-1a2b3c.local:8443/p/${name}`);
  expect(moduleOf(file)).toBeGreaterThanOrEqual(SMALLEST_MODULE);
});
