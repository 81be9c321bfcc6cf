import { expect, test } from 'vitest';
import type { TokenResult } from '../../src/core/lan-service.ts';
import { BrokerHarness } from '../broker/broker-harness.ts';
import type { Fault } from '../support/faulty-portal.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
/** The interval of the token requests, in ms. */
const EVERY = 250;
/** The duration of the load, in ms. */
const LASTS = 10 * MINUTE;

function fail(home: BrokerHarness, fault: Fault): void {
  home.portal.fail('token', ...Array<Fault>(1000).fill(fault));
}

test.each<[string, (home: BrokerHarness) => Promise<void> | void]>([
  ['is unreachable', (home) => home.portal.disconnect()],
  ['drops every response', (home) => fail(home, { kind: 'commit then drop' })],
  ['answers 503', (home) => fail(home, { kind: 'answer', status: 503 })],
  [
    "rejects the hub's client secret",
    (home) => fail(home, { kind: 'answer', status: 401, body: '{"error":"invalid_client"}' }),
  ],
])(
  'a portal that %s gets few refreshes from frequent token requests, and tokens are issued again afterwards',
  async (_, begin) => {
    await using home = await BrokerHarness.start({ emulator: { refreshGrace: 1000 } });
    const id = await home.addPairedAppliance();
    await begin(home);
    await home.time.pass(61 * MINUTE);
    const answers: TokenResult[] = [];
    const tries: number[] = [];
    for (let passed = 0; passed < LASTS; passed += EVERY) {
      const before = home.refreshAttempts;
      void Promise.resolve(home.run.tokenIssuer.issue(id, null)).then((answer) => answers.push(answer));
      await home.time.pass(EVERY);
      for (let number = before; number < home.refreshAttempts; number++) tries.push(passed);
    }
    expect(answers).toHaveLength(LASTS / EVERY);
    for (const answer of answers) {
      expect(answer).toMatchObject({ kind: 'unavailable', unusableTokenReason: 'expired' });
      if (answer.kind !== 'unavailable') continue;
      expect(answer.retryAfter).toBeGreaterThanOrEqual(1);
      expect(answer.retryAfter).toBeLessThanOrEqual(3600);
    }
    expect(tries.length).toBeGreaterThan(0);
    expect(tries.length).toBeLessThanOrEqual(10);
    for (const [index, at] of tries.entries())
      expect(at - (tries[index - 1] ?? -SECOND)).toBeGreaterThanOrEqual(SECOND);

    home.portal.clearFaults('token');
    await home.portal.disconnect();
    await home.portal.reconnect();
    await home.time.pass(60 * MINUTE);
    expect(await home.whoami(await home.token(id))).toBe(200);
  },
);
