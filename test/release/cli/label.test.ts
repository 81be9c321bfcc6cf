import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { shareFakeAdministration } from '../../cli/command.ts';
import { type Browser, browserSkipReason, startBrowser } from '../../support/browser.ts';
import { qrScannerSkipReason, scanQrCode } from '../../support/qr-scanner.ts';
import { setUpOnce } from '../../support/set-up.ts';

const LINK = 'https://latchkey-1a2b3c.local:8443/p/wallbox';
/** In mm: a phone can read this size from about 10 cm away, even from a poor printer. */
const SMALLEST_MODULE = 0.4;
const BY_ADDRESS = 'https://192.168.1.7:8443/p/wallbox';
const PX_PER_MM = 96 / 25.4;

const hub = shareFakeAdministration();
let browser: Browser;
const skipReason = async () => (await browserSkipReason()) ?? qrScannerSkipReason();
setUpOnce(
  async (parts) => {
    browser = parts.use(await startBrowser());
  },
  { skipReason },
);
const folder = mkdtempSync(join(tmpdir(), 'lk-label-'));

/** The label as a browser draws it: its sizes, what a scanner reads, and the texts that leave the label. */
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
    };
  });
  return { ...measured, read: scanQrCode(await visit.page.screenshot()) };
}

test.each([
  ['the lasting link', [], LINK],
  ['the current address with --by-address', ['--by-address'], BY_ADDRESS],
])('pair --print writes a label of 60 by 40 mm in black and white whose QR code is %s', async (_, args, link) => {
  const file = join(folder, `label-${args.length}.svg`);
  const { status, stdout, stderr } = await hub.latchkey('pair', 'wallbox', '--print', '--output', file, ...args);
  expect({ status, stderr }).toEqual({ status: 0, stderr: expect.stringContaining(file) });
  for (const text of ['wallbox', 'Cellar hub', LINK, BY_ADDRESS]) expect(stdout).toContain(text);
  const { width, height, module, colours, outside, read } = await renderLabel(file);
  expect({ read, outside }).toEqual({ read: link, outside: [] });
  expect(width / PX_PER_MM).toBeCloseTo(60, 2);
  expect(height / PX_PER_MM).toBeCloseTo(40, 2);
  expect(module / PX_PER_MM).toBeGreaterThanOrEqual(SMALLEST_MODULE);
  expect(new Set(colours)).toEqual(new Set(['rgb(0, 0, 0)', 'rgb(255, 255, 255)']));
});

test('pair --print fits names of any length and with any letters on the label', async () => {
  hub.administration.hub = {
    ...hub.administration.hub,
    name: 'Häuschen der Müllers "im Keller" & <Flur> 🏠, hinter der Treppe links unten',
  };
  const name = `a${'b'.repeat(60)}c`;
  const file = join(folder, 'long.svg');
  expect((await hub.latchkey('pair', name, '--print', '--output', file)).status).toBe(0);
  const { module, outside, read } = await renderLabel(file);
  const link = `https://latchkey-1a2b3c.local:8443/p/${name}`;
  expect({ read, outside }).toEqual({ read: link, outside: [] });
  expect(module / PX_PER_MM).toBeGreaterThanOrEqual(SMALLEST_MODULE);
});
