import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, type TestContext, test } from 'vitest';
import { labelSvg } from '../../../src/system/label.ts';
import { type Browser, browserSkipReason, startBrowser } from '../../support/browser.ts';
import { qrScannerSkipReason, scanQrCode } from '../../support/qr-scanner.ts';
import { setUpOnce } from '../../support/set-up.ts';
import { runShell, shareFakeAdministration } from '../command.ts';

const LINK = 'https://latchkey-1a2b3c.local:8443/p/wallbox';
/** In mm: a phone can read this size from about 10 cm away, even from a poor printer. */
const SMALLEST_MODULE = 0.4;
const BY_ADDRESS = 'https://192.168.1.7:8443/p/wallbox';
const PX_PER_MM = 96 / 25.4;

const hub = shareFakeAdministration();
const missing = (await browserSkipReason()) ?? qrScannerSkipReason();
let browser: Browser;
setUpOnce(async (parts) => {
  if (missing === null) browser = parts.use(await startBrowser());
});
const folder = mkdtempSync(join(tmpdir(), 'lk-label-'));

/** The label as a browser draws it: its sizes, what a scanner reads, and the texts that overlap or leave the label. */
async function renderLabel(file: string) {
  await using visit = await browser.visit({ viewport: { width: 240, height: 160 }, deviceScaleFactor: 4 });
  await visit.page.goto(pathToFileURL(file).href);
  const measured = await visit.page.evaluate(() => {
    const svg = document.querySelector('svg');
    const whole = svg?.getBoundingClientRect() ?? new DOMRect();
    const code = document.querySelector<SVGPathElement>('path[transform]');
    const texts = [...document.querySelectorAll('text')];
    const boxes = texts.map((text) => text.getBoundingClientRect());
    return {
      width: whole.width,
      height: whole.height,
      module: code?.getScreenCTM()?.a ?? 0,
      colours: [...document.querySelectorAll('path, text')].map((element) => getComputedStyle(element).fill),
      outside: texts
        .filter((_, index) => {
          const box = boxes[index] ?? whole;
          return box.left < whole.left || box.right > whole.right || box.bottom > whole.bottom;
        })
        .map((text) => text.textContent),
      overlapping: texts
        .filter((_, index) =>
          boxes.some((box, other) => {
            const own = boxes[index] ?? whole;
            // The box of a line is higher than its letters.
            return (
              other < index && box.bottom > own.top + own.height / 3 && box.right > own.left && box.left < own.right
            );
          }),
        )
        .map((text) => text.textContent),
    };
  });
  return { ...measured, read: scanQrCode(await visit.page.screenshot()) };
}

function skipWithoutScanner(ctx: TestContext): void {
  if (missing !== null) ctx.skip(missing);
}

test('pair --print writes a label of 60 by 40 mm in black and white whose QR code is the lasting link', (ctx) =>
  label(ctx, 'name.svg', [], LINK));

test('pair --print --by-address puts the current address into the QR code', (ctx) =>
  label(ctx, 'address.svg', ['--by-address'], BY_ADDRESS));

async function label(ctx: TestContext, name: string, args: string[], link: string): Promise<void> {
  skipWithoutScanner(ctx);
  const file = join(folder, name);
  const { status, stdout, stderr } = await hub.latchkey('pair', 'wallbox', '--print', '--output', file, ...args);
  expect({ status, stderr }).toEqual({ status: 0, stderr: expect.stringContaining(file) });
  for (const text of ['wallbox', 'Cellar hub', LINK, BY_ADDRESS]) expect(stdout).toContain(text);
  const { width, height, module, colours, outside, overlapping, read } = await renderLabel(file);
  expect({ read, outside, overlapping }).toEqual({ read: link, outside: [], overlapping: [] });
  expect(width / PX_PER_MM).toBeCloseTo(60, 2);
  expect(height / PX_PER_MM).toBeCloseTo(40, 2);
  expect(module / PX_PER_MM).toBeGreaterThanOrEqual(SMALLEST_MODULE);
  expect(new Set(colours)).toEqual(new Set(['rgb(0, 0, 0)', 'rgb(255, 255, 255)']));
}

test('pair --print prints a QR code for paper on standard output, with the dark modules drawn', async () => {
  const { stdout } = await hub.latchkey('pair', 'wallbox', '--print', '--output', join(folder, 'text.svg'));
  const block = stdout.split('\n').filter((line) => /[█▀▄]/.test(line));
  // The upper edge of the finder patterns, after a quiet zone of two modules.
  expect(block[0]).toMatch(/^ {2}█▀▀▀▀▀█ .* █▀▀▀▀▀█/);
});

test('pair --print replaces an existing file only with --yes', async () => {
  const file = join(folder, 'kept.svg');
  writeFileSync(file, 'precious');
  const refused = await hub.latchkey('pair', 'wallbox', '--print', '--output', file);
  expect(refused).toMatchObject({ status: 1, stdout: '', stderr: expect.stringContaining('--yes') });
  expect(readFileSync(file, 'utf8')).toBe('precious');
  expect((await hub.latchkey('pair', 'wallbox', '--print', '--output', file, '--yes')).status).toBe(0);
  expect(readFileSync(file, 'utf8')).toMatch(/^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" /);
});

test('pair --print without --output writes into the working directory, under the name of the appliance', async () => {
  const place = mkdtempSync(join(tmpdir(), 'lk-label-'));
  const { status, stdout } = await runShell(`cd ${place} && $LATCHKEY pair heat-pump --print --json`, hub.env);
  expect(status).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ name: 'heat-pump', file: 'latchkey-heat-pump.svg' });
  expect(existsSync(join(place, 'latchkey-heat-pump.svg'))).toBe(true);
});

test('pair --print fails in one line if the file can not be written', async () => {
  const { status, stderr } = await hub.latchkey('pair', 'wallbox', '--print', '--output', join(folder, 'no', 'x.svg'));
  expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringMatching(/^latchkey: .*--output\n$/) });
});

test('pair --print fits names of any length and with any letters on the label', async (ctx) => {
  skipWithoutScanner(ctx);
  hub.administration.hub = {
    ...hub.administration.hub,
    name: 'Häuschen der Müllers "im Keller" & <Flur> 🏠, hinter der Treppe links unten',
  };
  const name = `a${'b'.repeat(60)}c`;
  const file = join(folder, 'long.svg');
  expect((await hub.latchkey('pair', name, '--print', '--output', file)).status).toBe(0);
  const { module, outside, overlapping, read } = await renderLabel(file);
  const link = `https://latchkey-1a2b3c.local:8443/p/${name}`;
  expect({ read, outside, overlapping }).toEqual({ read: link, outside: [], overlapping: [] });
  expect(module / PX_PER_MM).toBeGreaterThanOrEqual(SMALLEST_MODULE);
});

test('a label is a valid file if the name of the hub contains a control character', async (ctx) => {
  skipWithoutScanner(ctx);
  const file = join(folder, 'control.svg');
  const content = { name: 'wallbox', caption: 'Scan to connect', link: LINK, otherLink: null };
  writeFileSync(file, labelSvg({ ...content, hubName: 'Cellar\u0007 hub' }));
  expect((await renderLabel(file)).read).toBe(LINK);
});
