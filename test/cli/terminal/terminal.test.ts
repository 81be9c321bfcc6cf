import { beforeEach, expect, test } from 'vitest';
import { renderQrCode } from '../../../src/cli/terminal/qr-code.ts';
import { shareFakeAdministration, startOnTerminal } from '../command.ts';

const waiting = {
  event: 'waiting',
  authorizeUrl: `https://portal.example/authorize?state=${'x'.repeat(200)}`,
  expiresIn: 900,
} as const;

/** Returns to the beginning of the line and erases what follows. */
const CLEARED = '\r\u001b[J';

/** The lines of a terminal, without wrapping. */
const lines = (written: string) => written.split('\r\n');

const hub = shareFakeAdministration();

beforeEach(() => {
  hub.administration.set({ name: 'wallbox', state: 'active' });
});

test.each([
  ['unpair', 'y', true],
  ['unpair', 'n', false],
  ['appliance remove', 'YES', true],
  ['appliance remove', '', false],
])('%s asks for a confirmation, and acts on the answer %j', async (command, answer, done) => {
  const { status } = await hub.onTerminal(...command.split(' '), 'wallbox').reply(/\[y\/N\] /, `${answer}\r`);
  expect(status).toBe(done ? 0 : 1);
  expect(hub.administration.appliances.get('wallbox')?.state === 'active').toBe(!done);
});

test('rotate-secret replaces a key only after a confirmation', async () => {
  const { administration } = hub;
  administration.appliancesWithKeys.add('wallbox');
  for (const [answer, status] of [
    ['n', 1],
    ['y', 0],
  ] as const) {
    const running = hub.onTerminal('appliance', 'rotate-secret', 'wallbox');
    await running.stdout(/authenticates with its own key.*\[y\/N\] /);
    expect(administration.appliancesWithKeys.has('wallbox')).toBe(true);
    running.process.stdin?.write(`${answer}\r`);
    expect((await running.ended).status).toBe(status);
    expect(administration.appliancesWithKeys.has('wallbox')).toBe(status === 1);
  }
  administration.appliancesWithKeys.add('wallbox');
  const stderr = expect.stringMatching(/authenticates with a key: add --yes to confirm\n$/);
  expect(await hub.latchkey('appliance', 'rotate-secret', 'wallbox')).toMatchObject({ status: 1, stdout: '', stderr });
  expect(await hub.latchkey('appliance', 'rotate-secret', 'wallbox', '--yes')).toMatchObject({ status: 0, stderr: '' });
});

test('Ctrl-C at a confirmation counts as "no"', async () => {
  const { status, stdout } = await hub.onTerminal('appliance', 'remove', 'wallbox').reply(/\[y\/N\] /, '\u0003');
  expect(status).toBe(1);
  expect(stdout).toMatch(/latchkey: wallbox was not removed\r\n$/);
  expect(hub.administration.appliances.has('wallbox')).toBe(true);
});

test('pair updates the remaining time in one line, and removes it at the end', async () => {
  hub.administration.script = [{ ...waiting, expiresIn: 90 }];
  const running = hub.onTerminal('pair', 'wallbox');
  const seen = await running.stdout(/expires in 90 s.*expires in 8[789] s/s);
  expect(seen).toContain(`${CLEARED}waiting for login … expires in 8`);
  [...hub.administration.pairings.values()].at(-1)?.push({ event: 'paired', scope: null });
  const { status, stdout } = await running.ended;
  expect(status).toBe(0);
  expect(stdout).toMatch(/wallbox is connected\r\n$/);
  expect(stdout).toContain(`${CLEARED}wallbox is connected`);
});

test('pair shows the link after its QR code on a low terminal, and only the link on a very low one', async () => {
  hub.administration.script = [{ ...waiting, authorizeUrl: 'https://portal.example/authorize?state=short' }];
  const pairWithRows = async (rows: number) =>
    (await startOnTerminal(['pair', 'wallbox', '--no-wait'], { ...hub.env, NO_COLOR: '1' }, 80, rows).ended).stdout;
  const roomy = await pairWithRows(40);
  expect(roomy).toMatch(/state=short\r\n.*█/s);
  const tight = await pairWithRows(20);
  expect(tight).toMatch(/█.*Log in to connect wallbox:.*state=short\r\n/s);
  expect(tight).not.toMatch(/state=short.*█/s);
  const low = await pairWithRows(10);
  expect(low).toMatch(/state=short\r\n.*not high enough for the QR code, which needs \d+ lines\)/s);
  expect(low).not.toContain('█');
});

test('on a terminal of 80×24 the whole QR code of the short link is visible with its hint and the remaining time', async () => {
  const authorizeUrl = `https://portal.example/authorize?state=${'x'.repeat(600)}`;
  const shortUrl = 'http://192.168.178.123:8480/l/Zx3-Zx3-Zx3-Zx3-';
  hub.administration.script = [{ ...waiting, authorizeUrl, shortUrl }];
  const env = { ...hub.env, NO_COLOR: '1' };
  const running = startOnTerminal(['pair', 'wallbox'], env, 80, 24);
  const before = lines(await running.stdout(/waiting for login … expires in 15:00 min/));
  expect(before.slice(0, -24).join('\n')).toContain('Log in to connect wallbox:');
  expect(before).toContain(`  ${authorizeUrl}`);
  const seen = before.slice(-24);
  const code = renderQrCode(shortUrl, { isTTY: true, columns: 80, rows: 23 })?.split('\n') ?? [];
  const from = seen.indexOf(code[0] ?? '');
  expect(seen.slice(from, from + code.length)).toEqual(code);
  expect(seen.slice(from + code.length)).toEqual([
    'The QR code is for a phone in this home network; the link works anywhere.',
    expect.stringMatching(/waiting for login … expires in 15:00 min$/),
  ]);

  // The same short link again changes nothing; another short link needs another QR code.
  const [pairing] = [...hub.administration.pairings.values()].slice(-1);
  pairing?.push({ ...waiting, authorizeUrl, shortUrl, expiresIn: 800 });
  pairing?.push({ ...waiting, authorizeUrl, shortUrl: 'http://192.168.178.9:8480/l/Zx3-Zx3-Zx3-Zx3-' });
  pairing?.push({ event: 'paired', scope: null });
  const { stdout } = await running.ended;
  expect(stdout.split('a phone in this home network')).toHaveLength(3);
  expect(stdout).toContain("with this new link (the hub's address has changed");
});

test('pair on a dumb terminal says once that it waits, and uses no colours', async () => {
  hub.administration.script = [{ ...waiting, authorizeUrl: 'https://portal.example/authorize?state=short' }];
  const running = startOnTerminal(['pair', 'wallbox'], { ...hub.env, TERM: 'dumb' }, 80);
  await running.stdout(/waiting for login, expires in 15 min\r\n/);
  [...hub.administration.pairings.values()].at(-1)?.push({ event: 'paired', scope: null });
  const { status, stdout } = await running.ended;
  expect(status).toBe(0);
  expect(stdout).not.toContain('\u001b');
  expect(stdout).toMatch(/wallbox is connected\r\n$/);
});
