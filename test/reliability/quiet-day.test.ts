import { expect, test } from 'vitest';
import { countEvents, DAILY, HOUR, startFiveAppliances } from './five-appliances.ts';

test('the log of a day without faults has a handful of lines, including one daily summary', async () => {
  await using running = await startFiveAppliances();
  const { home, pass, moveTo } = running;
  home.journal.length = 0;
  const before = home.refreshes;
  const lines = await pass(12 * HOUR);
  moveTo('192.168.1.8');
  lines.push(...(await pass(12 * HOUR)));
  expect(home.refreshes - before).toBeGreaterThan(130);
  expect(countEvents(lines)).toEqual({ ...DAILY, address_changed: 1 });
  expect(lines.find(({ event }) => event === 'daily_summary')).toMatchObject({
    fields: { connections: 5, refreshed: expect.any(Number), failed: 0 },
  });
  expect(home.journal.map((line) => JSON.parse(line).event)).toEqual(lines.map(({ event }) => event));
});

test('a portal outage of four hours is logged for all appliances together, ever more rarely, and once when it ends', async () => {
  await using running = await startFiveAppliances();
  const { home, pass } = running;
  const tries = home.refreshAttempts;
  await home.portal.disconnect();
  const lines = (await pass(4 * HOUR)).filter(({ event }) => !(event in DAILY));
  expect(home.refreshAttempts - tries).toBeGreaterThan(150);
  // Logged at once, and after one and three hours.
  expect(countEvents(lines)).toEqual({ refresh_failed: 3 });
  const [first, second] = lines;
  expect(first?.fields).toMatchObject({
    portal: 'home',
    problem: 'portal_unreachable',
    message: expect.stringContaining('connect ECONNREFUSED 127.0.0.1'),
  });
  expect(first?.fields).not.toHaveProperty('tries');
  expect(second?.fields).toMatchObject({ connections: 5, tries: expect.any(Number), duration: expect.any(Number) });
  await home.portal.reconnect();
  const after = await pass(2 * HOUR);
  expect(countEvents(after)).toEqual({ portal_available: 1 });
  expect(after[0]?.fields).toMatchObject({ portal: 'home', problem: 'portal_unreachable', connections: 5 });
});
