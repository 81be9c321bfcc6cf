import { expect, test } from 'vitest';
import { renderLink } from '../../../src/cli/pair/text-display.ts';

const link = {
  authorize_url: `https://portal.example/authorize?state=${'x'.repeat(600)}`,
  short_url: 'http://192.168.178.123:8480/l/Zx3-Zx3-Zx3-Zx3-',
};
const HINT = 'for a phone in this home network';

const renderOn = (columns: number, rows: number, shown: Parameters<typeof renderLink>[1] = link) =>
  renderLink('Log in:', shown, { isTTY: true, columns, rows });

test.each([
  [80, 24, true],
  // The code of the full link would fit, but not together with the link.
  [110, 50, true],
  [110, 70, false],
])('on a terminal of %d×%d pair shows the QR code of the short link below the link: %s', (columns, rows, isShort) => {
  const shown = renderOn(columns, rows);
  expect(shown.hasShortCode).toBe(isShort);
  expect(shown.text).toMatch(/^Log in:\n\n {2}https:\S+x\n\n█/);
  expect(shown.text.replaceAll('\n', ' ').includes(HINT)).toBe(isShort);
});

test.each([
  ['http://127.0.0.1:8491/', 'The link and the QR code work only on this machine.'],
  ['http://192.168.1.7:8491/', 'The link and the QR code work only in this home network.'],
  ['https://203.0.113.7/', 'the link works anywhere.'],
  ['https://127.portal.example/', 'the link works anywhere.'],
])('pair says below a link to %s where it can be opened', (origin, hint) => {
  const { text } = renderOn(80, 24, { ...link, authorize_url: `${origin}authorize?state=${'x'.repeat(600)}` });
  expect(text.endsWith(hint)).toBe(true);
});

test('pair says which size the QR code needs if even the one of the short link does not fit', () => {
  for (const [columns, rows, why] of [
    [80, 18, 'not high enough for the QR code, which needs 19 lines'],
    [32, 40, 'too narrow for the QR code, which needs 33 columns'],
  ] as const) {
    const { text, hasShortCode: isShort } = renderOn(columns, rows);
    expect(isShort).toBe(false);
    expect(text.replaceAll('\n', ' ')).toContain(why);
    expect(text).not.toContain('█');
  }
});

test('pair shows the QR code of the link itself if there is no short link or no terminal', () => {
  expect(renderOn(80, 24, { authorize_url: link.authorize_url }).text).toContain(
    'too narrow for the QR code, which needs 89 columns',
  );
  const { text, hasShortCode: isShort } = renderLink('Log in:', link, {});
  expect(isShort).toBe(false);
  expect(text).not.toContain(HINT);
});

test('pair shows a link that is too long for a QR code, with the QR code of the short link if there is one', () => {
  const long = { ...link, authorize_url: `https://portal.example/authorize?state=${'x'.repeat(3000)}` };
  for (const screen of [{ isTTY: true, columns: 80, rows: 24 }, { isTTY: true, columns: 300, rows: 300 }, {}]) {
    const withShort = renderLink('Log in:', long, screen);
    expect(withShort.text).toContain(long.authorize_url);
    expect(withShort.text).toContain('█');
    expect(withShort.hasShortCode).toBe(true);
    const alone = renderLink('Log in:', { authorize_url: long.authorize_url }, screen);
    expect(alone.text).toContain(long.authorize_url);
    expect(alone.text).toContain('(the link is too long for a QR code)');
    expect(alone.text).not.toContain('█');
  }
});

test('pair shows the user code between the link and its QR code, with what a person does with it', () => {
  const device = { ...link, authorize_url: 'https://portal.example/device', user_code: 'WDJB-MJHT' };
  expect(renderOn(80, 40, device).text).toMatch(
    /^Log in:\n\n {2}https:\/\/portal\.example\/device\n\nEnter this code there: WDJB-MJHT\n\n█/,
  );
  const complete = {
    ...device,
    authorize_url: `${device.authorize_url}?user_code=WDJB-MJHT`,
    contains_user_code: true as const,
  };
  expect(renderOn(80, 40, complete).text).toContain('\nCheck that the page there shows this code: WDJB-MJHT\n\n█');
});
