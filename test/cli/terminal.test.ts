import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { onTerminal, runHousehold } from './command.ts';

const waiting = {
  event: 'waiting',
  authorize_url: `https://portal.example/authorize?state=${'x'.repeat(200)}`,
  expires_in: 900,
} as const;

/** Back to the line's beginning, and all of it erased. */
const CLEARED = '\r\u001b[K';

let hub: Awaited<ReturnType<typeof runHousehold>>;

beforeAll(async () => {
  hub = await runHousehold();
});

afterAll(() => hub[Symbol.asyncDispose]());

beforeEach(() => {
  hub.household.set({ name: 'wallbox', state: 'active' });
});

test.each([
  ['unpair', 'y', true],
  ['unpair', 'n', false],
  ['appliance remove', 'YES', true],
  ['appliance remove', '', false],
])('%s asks a person back, and %j is taken for what it is', async (command, answer, done) => {
  const running = hub.onTerminal(...command.split(' '), 'wallbox');
  await running.stdout(/\[y\/N\] /);
  running.process.stdin?.write(`${answer}\r`);
  const { status } = await running.ended;
  expect(status).toBe(done ? 0 : 1);
  expect(hub.household.appliances.get('wallbox')?.state === 'active').toBe(!done);
});

test.each(['\u0003', '\u0004'])('Ctrl-C and Ctrl-D at the question are no', async (key) => {
  const running = hub.onTerminal('appliance', 'remove', 'wallbox');
  await running.stdout(/\[y\/N\] /);
  running.process.stdin?.write(key);
  const { status, stdout } = await running.ended;
  expect(status).toBe(1);
  expect(stdout).toMatch(/latchkey: wallbox was not removed\r\n$/);
  expect(hub.household.appliances.has('wallbox')).toBe(true);
});

test('--yes asks nothing', async () => {
  const { status, stdout } = await hub.onTerminal('appliance', 'remove', 'wallbox', '--yes').ended;
  expect(status).toBe(0);
  expect(stdout).not.toContain('[y/N]');
});

test('the time that is left is kept up to date in one line, and gone at the end', async () => {
  hub.household.script = [{ ...waiting, expires_in: 90 }];
  const running = hub.onTerminal('pair', 'wallbox');
  const seen = await running.stdout(/expires in 90 s.*expires in 8[789] s/s);
  expect(seen).toContain(`${CLEARED}waiting for login … expires in 8`);
  [...hub.household.pairings.values()].at(-1)?.push({ event: 'paired', scope: null });
  const { status, stdout } = await running.ended;
  expect(status).toBe(0);
  expect(stdout).toMatch(/wallbox is connected\r\n$/);
  expect(stdout).toContain(`${CLEARED}wallbox is connected`);
});

test('after Ctrl-C the message has a line of its own', async () => {
  hub.household.script = [waiting];
  const running = hub.onTerminal('pair', 'wallbox');
  await running.stdout(/waiting for login/);
  running.process.stdin?.write('\u0003');
  const { status, stdout } = await running.ended;
  expect(status).toBe(130);
  expect(stdout).toContain(`${CLEARED}latchkey: stopped watching`);
});

test('a terminal too narrow for the QR code gets the link alone', async () => {
  hub.household.script = [waiting];
  const { status, stdout } = await onTerminal(['pair', 'wallbox', '--no-wait'], hub.env, 40).ended;
  expect(status).toBe(0);
  expect(stdout).toContain('too narrow');
  expect(stdout).not.toContain('█');
  await vi.waitFor(() => expect([...hub.household.pairings.values()].at(-1)?.followers).toBe(0));
});
