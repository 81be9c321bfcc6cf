import { expect, test } from 'vitest';
import type { BrokerHarness } from '../../broker/broker-harness.ts';
import { countEvents, DAILY, HOUR, MINUTE, SECOND, startFiveAppliances } from '../../reliability/five-appliances.ts';
import type { Fault } from '../../support/faulty-portal.ts';

const PASSED: Fault = { kind: 'alter', with: (answer) => answer };

/** Makes every request (or every second one) fail for more than a day. */
function fail(home: BrokerHarness, fault: Fault, everyOther = false): void {
  const faults = Array<Fault>(5000).fill(fault);
  home.portal.fail('token', ...(everyOther ? faults.flatMap((one) => [one, PASSED]) : faults));
}

test('the log has the first refresh of each appliance after a start', async () => {
  await using running = await startFiveAppliances();
  const { home, pass } = running;
  await home.stop();
  await home.start();
  await home.time.settle();
  expect(countEvents(await pass(2 * HOUR))).toMatchObject({ token_refreshed: 5 });
});

test.each([
  ['answers 503 every other time', { kind: 'answer', status: 503 }],
  ['drops every other response', { kind: 'commit then drop' }],
] as const)('a portal that %s for hours does not cause a log line for each attempt', async (_, fault) => {
  await using running = await startFiveAppliances({ emulator: { refreshGrace: 100 } });
  const { home, pass } = running;
  fail(home, fault, true);
  expect((await pass(6 * HOUR)).length).toBeLessThan(60);
  expect(home.refreshAttempts).toBeGreaterThan(70);
});

test.each<[string, number, (home: BrokerHarness) => void]>([
  [
    "rejects the hub's client credentials",
    5,
    (home) => fail(home, { kind: 'answer', status: 401, body: '{"error":"invalid_client"}' }),
  ],
  ['rejects everything', 10, (home) => fail(home, { kind: 'answer', status: 403 })],
  ['refuses the grants', 5, (home) => fail(home, { kind: 'answer', status: 400, body: '{"error":"invalid_grant"}' })],
])('a portal that %s causes at most %i log lines, not one for each attempt', async (_, most, begin) => {
  await using running = await startFiveAppliances();
  const { home, pass } = running;
  begin(home);
  const before = home.refreshAttempts;
  const lines = (await pass(3 * HOUR)).filter(({ event }) => !(event in DAILY));
  expect(lines.length).toBeLessThanOrEqual(most);
  expect(lines.length).toBeGreaterThan(0);
  expect(home.refreshAttempts - before).toBeGreaterThanOrEqual(most);
});

test('a portal that drops every connection for hours causes a few log lines for each appliance', async () => {
  await using running = await startFiveAppliances({ emulator: { refreshGrace: 100 } });
  const { home, pass } = running;
  fail(home, { kind: 'drop' });
  const before = home.refreshAttempts;
  const lines = countEvents(await pass(3 * HOUR));
  expect(home.refreshAttempts - before).toBeGreaterThan(50);
  expect(lines['answer_lost']).toBe(5);
  expect(lines['refresh_failed']).toBeLessThanOrEqual(2 * 5);
});

test('a disk that is full for hours is logged rarely, and once when it is writable again', async () => {
  await using running = await startFiveAppliances();
  const { home, pass } = running;
  for (const write of ['grants.beginAttempt', 'grants.endAttempt', 'grants.replace'] as const)
    home.failingWrites.add(write);
  const lines = await pass(6 * HOUR);
  expect(countEvents(lines)['refresh_failed']).toBe(3);
  expect(lines[0]?.fields).toMatchObject({
    problem: 'store_unwritable',
    message: expect.stringContaining('disk is full'),
  });
  home.failingWrites.clear();
  // The snapshot is written to a real disk, for which virtual time does not wait: on a busy machine it may end in this
  // hour.
  const after = (await pass(HOUR)).filter(({ event }) => event !== 'snapshot_written');
  expect(countEvents(after)).toEqual({ store_writable: 1 });
});

test('a device flow that nobody opens and that its appliance keeps repeating is logged rarely', async () => {
  await using running = await startFiveAppliances();
  const { home, pass } = running;
  const { appliance } = await home.addAppliance('shy');
  const { deviceFlows } = home.run;
  let begun = 0;
  const begin = () => {
    void deviceFlows.begin(appliance, home.connection('shy'), null).then(({ kind }) => {
      if (kind === 'begun') begun += 1;
    });
    home.time.after(15 * MINUTE + SECOND, begin);
  };
  begin();
  const lines = (await pass(6 * HOUR)).filter(({ event }) => !(event in DAILY));
  expect(begun).toBeGreaterThan(20);
  expect(countEvents(lines)).toEqual({ pairing_started: 3 });
});

test('an appliance that rejects every token it gets is logged rarely', async () => {
  await using running = await startFiveAppliances();
  const { home, ids, pass } = running;
  const [id = ''] = ids;
  const refuse = async () => {
    await home.run.grants.reportRejectedToken(id, await home.token(id));
    home.time.after(2 * MINUTE, () => void refuse());
  };
  void refuse();
  const before = home.refreshes;
  expect((await pass(3 * HOUR)).length).toBeLessThan(12);
  expect(home.refreshes - before).toBeGreaterThan(60);
});

test('a portal that comes and goes during a pairing is logged at most three times', async () => {
  await using running = await startFiveAppliances();
  const { home, pass } = running;
  await home.addAppliance('car');
  const run = await home.beginPairing('car');
  const answer = { kind: 'answer', status: 503 } as const;
  home.portal.fail(
    'code',
    ...Array<Fault>(100)
      .fill(answer)
      .flatMap((one) => [one, PASSED]),
  );
  const lines = countEvents(await pass(10 * MINUTE));
  expect(lines['portal_unreachable']).toBeLessThanOrEqual(3);
  await home.login(run);
  expect(countEvents(await pass(MINUTE))).toMatchObject({ connection_paired: 1 });
});
