import { describe, expect, test } from 'vitest';
import type { DeviceAuthorization } from '../../src/core/lan-service.ts';
import { MINUTE, SECOND } from '../core/samples.ts';
import { BrokerHarness, type BrokerHarnessOptions } from './broker-harness.ts';
import { beginFlow, expectPairedBy, followRedirect, logInAt, openFlow, pollFlow, REDIRECT } from './logins.ts';

/** A broker with an appliance that has begun a device flow. */
async function startFlow(options: BrokerHarnessOptions = {}) {
  const { harness, appliance } = await BrokerHarness.startUnpaired(options);
  return { harness, appliance, id: appliance.id, flow: await beginFlow(harness) };
}

/** Opens the page after a delay that is long enough for a new link. */
async function openFreshLink(harness: BrokerHarness, flow: DeviceAuthorization): Promise<string> {
  await harness.time.pass(MINUTE);
  return openFlow(harness, flow);
}

const linkRequests = (harness: BrokerHarness) => harness.portal.requests('config').length;
/** The distinct `state` values polled after the first `since` polls. */
const polledStates = (harness: BrokerHarness, since: number) =>
  new Set(
    harness.portal
      .requests('code')
      .slice(since)
      .map(({ query }) => query.get('state')),
  );

describe('device flow', () => {
  test('a device flow is paired when a person has opened the link and logged in', async () => {
    const { harness, id, flow } = await startFlow();
    expect(flow).toMatchObject({ expiresIn: 900, interval: 5 });
    expect(flow.deviceCode.reveal()).toMatch(/^[\w-]{43}$/);
    expect(pollFlow(harness, id, flow)).toBe('pending');
    await expectPairedBy(harness, id, flow, await openFlow(harness, flow));
    expect(await harness.whoami(await harness.token(id))).toBe(200);
    expect(harness.portal.requests('token')[0]?.form.get('scope')).toBe('Monitoring');
  });

  test('a device flow sends the portal nothing before somebody opens it', async () => {
    const { harness, id, flow } = await startFlow();
    for (let minute = 0; minute < 14; minute++) {
      await harness.time.pass(MINUTE);
      expect(pollFlow(harness, id, flow)).toBe('pending');
    }
    expect(harness.portal.recordedRequests).toEqual([]);
    await harness.time.pass(MINUTE);
    expect(pollFlow(harness, id, flow)).toBe('expired');
    expect(await harness.run.deviceFlows.openLink(flow.userCode)).toEqual({ kind: 'over' });
    expect(harness.portal.recordedRequests).toEqual([]);
  });

  test("a device flow does not begin for more than the appliance's own scope", async () => {
    const harness = await BrokerHarness.start();
    await harness.addAppliance('wallbox', 'Monitoring RemoteControl');
    await harness.addAppliance('meter', null);
    const { deviceFlows, appliances } = harness.run;
    const kind = async (name: string, scope: string | null) =>
      deviceFlows.begin(appliances.get(name), harness.connection(name), scope).then((outcome) => outcome);
    expect(await kind('wallbox', 'Monitoring More')).toEqual({
      kind: 'other_scope',
      scope: 'Monitoring RemoteControl',
    });
    expect(await kind('meter', 'Monitoring')).toEqual({ kind: 'other_scope', scope: null });
    expect(await kind('wallbox', 'RemoteControl')).toMatchObject({ kind: 'begun' });
    expect(await kind('wallbox', null)).toMatchObject({ kind: 'begun' });
    expect(await kind('meter', null)).toMatchObject({ kind: 'begun' });
  });

  test('an appliance may begin ten device flows at once, then one a minute, and they share one stored pairing', async () => {
    const { harness, appliance } = await BrokerHarness.startUnpaired();
    const { appliance: other } = await harness.addAppliance('meter');
    const { deviceFlows, store } = harness.run;
    for (let count = 0; count < 10; count++) {
      expect(await deviceFlows.begin(appliance, harness.connection(appliance.name), null)).toMatchObject({
        kind: 'begun',
      });
    }
    expect(await store.pairings.all()).toHaveLength(1);
    expect(await deviceFlows.begin(appliance, harness.connection(appliance.name), null)).toEqual({
      kind: 'unavailable',
      retryAfter: 60,
    });
    expect(await deviceFlows.begin(other, harness.connection(other.name), null)).toMatchObject({ kind: 'begun' });
    await harness.time.pass(57 * SECOND);
    expect(await deviceFlows.begin(appliance, harness.connection(appliance.name), null)).toEqual({
      kind: 'unavailable',
      retryAfter: 3,
    });
    await harness.time.pass(3 * SECOND - 0.3);
    expect(await deviceFlows.begin(appliance, harness.connection(appliance.name), null)).toEqual({
      kind: 'unavailable',
      retryAfter: 1,
    });
    await harness.time.pass(1);
    expect(await deviceFlows.begin(appliance, harness.connection(appliance.name), null)).toMatchObject({
      kind: 'begun',
    });
    expect(harness.portal.recordedRequests).toEqual([]);
  });

  test('a device flow that cannot be saved does not begin, and the previous one stays valid', async () => {
    const { harness, appliance, id, flow } = await startFlow();
    harness.failingWrites.add('pairings.save');
    await expect(
      harness.run.deviceFlows.begin(appliance, harness.connection(appliance.name), null),
    ).rejects.toMatchObject({ code: 'store_unwritable' });
    harness.failingWrites.clear();
    expect(pollFlow(harness, id, flow)).toBe('pending');
  });
});

describe('device flow polling', () => {
  test('a poll sooner than every 5 s gets slow_down and lengthens the interval by 5 s each time', async () => {
    const { harness, id, flow } = await startFlow();
    const pollAfter = async (seconds: number) => {
      await harness.time.pass(seconds * SECOND);
      return pollFlow(harness, id, flow);
    };
    expect(await pollAfter(0)).toBe('pending');
    expect(await pollAfter(5)).toBe('pending');
    expect(await pollAfter(4)).toBe('slow_down');
    expect(await pollAfter(9)).toBe('slow_down');
    expect(await pollAfter(15)).toBe('pending');
    expect(await pollAfter(14)).toBe('slow_down');
    expect(await pollAfter(20)).toBe('pending');
    await logInAt(harness, await openFlow(harness, flow));
    await harness.time.pass(10 * SECOND);
    expect(await pollAfter(0)).toBe('paired');
    // The appliance repeats the poll if it did not get the response.
    expect(await pollAfter(1)).toBe('paired');
  });

  test("a poll with an unknown device code, or with another appliance's, is answered with unknown", async () => {
    const { harness, id, flow } = await startFlow();
    const { appliance: other } = await harness.addAppliance('meter');
    expect(pollFlow(harness, other.id, flow)).toBe('unknown');
    for (const deviceCode of ['', 'x', flow.userCode, `${flow.deviceCode.reveal()}x`]) {
      expect(harness.run.deviceFlows.poll(id, deviceCode)).toEqual({ kind: 'unknown' });
    }
    expect(pollFlow(harness, id, flow)).toBe('pending');
  });

  test('a poll repeats the result, in case its response was lost, until ten minutes after the pairing expired', async () => {
    const { harness, id, flow } = await startFlow();
    await logInAt(harness, await openFlow(harness, flow));
    await harness.time.pass(24 * MINUTE);
    expect(pollFlow(harness, id, flow)).toBe('paired');
    expect(harness.run.deviceFlows.findByUserCode(flow.userCode)).not.toBeNull();
    await harness.time.pass(MINUTE);
    expect(pollFlow(harness, id, flow)).toBe('expired');
    expect(harness.run.deviceFlows.findByUserCode(flow.userCode)).toBeNull();
  });
});

describe('opening the link', () => {
  test("opening the link again and again, by anybody with the code, keeps the first person's login valid", async () => {
    const { harness, id, flow } = await startFlow();
    const state = await openFlow(harness, flow);
    for (let seconds = 0; seconds < 110; seconds += 5) {
      await harness.time.pass(5 * SECOND);
      await openFlow(harness, flow);
    }
    await expectPairedBy(harness, id, flow, state);
  });

  test("opening the link again gets a fresh one, so that the portal's links may be short-lived", async () => {
    const { harness, id, flow } = await startFlow({ emulator: { stateLifetime: 60 } });
    const first = await openFlow(harness, flow);
    await harness.time.pass(10 * MINUTE);
    await expect(logInAt(harness, first)).rejects.toThrow();
    const second = await openFlow(harness, flow);
    expect(second).not.toBe(first);
    await expectPairedBy(harness, id, flow, second);
  });

  test('opening the link in a loop sends the portal at most three requests a minute', async () => {
    const { harness, flow } = await startFlow();
    for (let tries = 0; tries < 120; tries++) {
      await openFlow(harness, flow);
      await harness.time.pass(500);
    }
    expect(linkRequests(harness)).toBeLessThanOrEqual(3);
    expect(linkRequests(harness)).toBeGreaterThan(0);
  });

  test.each(['drop', 'answer'] as const)(
    'opening the link reports that the portal is unreachable (%s), and a later try succeeds',
    async (kind) => {
      const { harness, id, flow } = await startFlow();
      harness.portal.fail(
        'config',
        kind === 'drop' ? { kind } : { kind, status: 503, headers: { 'retry-after': '3' } },
      );
      expect(await harness.run.deviceFlows.openLink(flow.userCode)).toEqual({ kind: 'unreachable' });
      expect(await harness.run.deviceFlows.openLink(flow.userCode)).toEqual({ kind: 'unreachable' });
      expect(linkRequests(harness)).toBe(1);
      expect(pollFlow(harness, id, flow)).toBe('pending');
      await harness.time.pass(3 * SECOND);
      await expectPairedBy(harness, id, flow, await openFlow(harness, flow));
    },
  );

  test('opening the link waits less than 10 s for a portal that hangs, and the next try gets its late response', async () => {
    const { harness, flow } = await startFlow();
    const response = harness.portal.hold('config');
    const opening = harness.run.deviceFlows.openLink(flow.userCode);
    await expect.poll(() => linkRequests(harness)).toBe(1);
    harness.time.skip(9 * SECOND);
    expect(await opening).toEqual({ kind: 'unreachable' });
    const again = openFlow(harness, flow);
    response.resolve();
    await again;
    expect(linkRequests(harness)).toBe(1);
  });
});

describe('links of one pairing', () => {
  test('the hub polls the newest three links of a pairing, 5 to 10 s apart', async () => {
    const { harness, flow } = await startFlow();
    const states: string[] = [await openFlow(harness, flow)];
    for (let count = 0; count < 4; count++) states.push(await openFreshLink(harness, flow));
    const before = harness.portal.requests('code').length;
    await harness.time.pass(MINUTE);
    expect(polledStates(harness, before)).toEqual(new Set(states.slice(2)));
    for (const state of states.slice(2)) {
      const times = harness.emulator.polls(state).map(({ at }) => at);
      const gaps = times.slice(1).map((at, index) => at - (times[index] ?? 0));
      expect(Math.min(...gaps)).toBeGreaterThanOrEqual(5 * SECOND);
      expect(Math.max(...gaps)).toBeLessThanOrEqual(10 * SECOND);
    }
  });

  test.each([0, 1, 2])(
    'any open link of a pairing may bring the code (number %d), and polling then stops for all links',
    async (number) => {
      const { harness, id, flow } = await startFlow();
      const states = [
        await openFlow(harness, flow),
        await openFreshLink(harness, flow),
        await openFreshLink(harness, flow),
      ];
      await expectPairedBy(harness, id, flow, states[number] ?? '');
      expect(harness.exchanges).toBe(1);
      const polls = harness.portal.requests('code').length;
      await harness.time.pass(5 * MINUTE);
      expect(harness.portal.requests('code')).toHaveLength(polls);
    },
  );

  test('all links stay valid after the portal refused a code, and the next opening gets a fresh link at once', async () => {
    const { harness, id, flow } = await startFlow(REDIRECT);
    const states = [await openFlow(harness, flow), await openFreshLink(harness, flow)];
    harness.portal.fail('token', { kind: 'answer', status: 400, body: '{"error":"invalid_grant"}' });
    await followRedirect(harness, await logInAt(harness, states[1] ?? ''));
    expect(harness.exchanges).toBe(1);
    expect(pollFlow(harness, id, flow)).toBe('pending');
    expect(await openFlow(harness, flow)).not.toBe(states[1]);
    await expectPairedBy(harness, id, flow, states[0] ?? '');
    expect(harness.emulator.observations.codesRepeated).toBe(0);
  });

  test('no link is polled after a lost answer until the next opening gets a fresh link', async () => {
    const { harness, id, flow } = await startFlow({ ...REDIRECT, emulator: { codeUrlAfterExchange: 'served' } });
    const states = [await openFlow(harness, flow), await openFreshLink(harness, flow)];
    harness.portal.fail('token', { kind: 'commit then drop' });
    await followRedirect(harness, await logInAt(harness, states[1] ?? ''));
    expect(pollFlow(harness, id, flow)).toBe('pending');
    const before = harness.portal.recordedRequests.length;
    await harness.time.pass(MINUTE);
    expect(harness.portal.recordedRequests).toHaveLength(before);
    const fresh = await openFlow(harness, flow);
    expect(states).not.toContain(fresh);
    await expectPairedBy(harness, id, flow, fresh);
    expect(harness.emulator.observations.codesRepeated).toBe(0);
  });
});

test.each(['stop', 'crash'] as const)(
  '(%s) a device flow that nobody has opened continues after a restart, and its codes stay valid',
  async (end) => {
    const { harness, id, flow } = await startFlow();
    await harness[end]();
    await harness.start();
    await harness.time.pass(MINUTE);
    expect(harness.portal.recordedRequests).toEqual([]);
    expect(pollFlow(harness, id, flow)).toBe('pending');
    await expectPairedBy(harness, id, flow, await openFlow(harness, flow));
  },
);
