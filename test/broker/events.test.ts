import { describe, expect, test } from 'vitest';
import type { ProblemCode } from '../../src/core/reports/problem.ts';
import { HubEvents } from '../../src/hub/hub-events.ts';
import type { Fault } from '../support/faulty-portal.ts';
import { logTo } from '../support/log-to.ts';
import { rememberSecrets } from '../support/logs.ts';
import { BrokerHarness } from './broker-harness.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;

/** What was told since the last time it was asked, without the times. */
function told(home: BrokerHarness) {
  return home.emittedEvents.splice(0).map(({ at: _, ...event }) => event);
}

test('a pairing and each refresh are emitted as one event, and not again after a restart', async () => {
  await using home = await BrokerHarness.start();
  const appliance = await home.addPairedAppliance();
  expect(told(home)).toEqual([{ kind: 'paired', appliance, scope: 'Monitoring' }]);
  const answer = Promise.withResolvers<void>();
  home.portal.fail('token', { kind: 'wait', until: answer.promise });
  void home.run.grants.refresh(appliance);
  await expect.poll(() => home.refreshes).toBe(1);
  home.time.skip(1500);
  answer.resolve();
  await home.run.grants.whenIdle();
  expect(home.emittedEvents).toMatchObject([{ at: { boot: 'boot-1', uptime: home.time.uptime } }]);
  expect(told(home)).toEqual([{ kind: 'refreshed', appliance, took: 1500 }]);
  await home.stop();
  await home.start();
  await home.time.pass(MINUTE);
  expect(told(home)).toEqual([]);
});

describe('failed pairing event', () => {
  test('a pairing that expires emits one failure event, also over a restart', async () => {
    await using home = await BrokerHarness.start({ lifetime: 10 * MINUTE });
    const { appliance } = await home.addAppliance('wallbox');
    await home.beginPairing('wallbox');
    await home.time.pass(2 * MINUTE);
    await home.stop();
    await home.start();
    await home.time.pass(20 * MINUTE);
    expect(told(home)).toEqual([{ kind: 'pairing_failed', appliance: appliance.id, reason: 'expired' }]);
    await home.crash();
    await home.start();
    expect(told(home)).toEqual([]);
  });

  test('a replaced pairing emits one failure event', async () => {
    await using home = await BrokerHarness.start();
    const { appliance } = await home.addAppliance('wallbox');
    await home.beginPairing('wallbox');
    await home.beginPairing('wallbox');
    expect(told(home)).toEqual([{ kind: 'pairing_failed', appliance: appliance.id, reason: 'replaced' }]);
  });

  test('a pairing that was being replaced when the hub crashed emits one failure event after the restart', async () => {
    await using home = await BrokerHarness.start();
    const { appliance } = await home.addAppliance('wallbox');
    await home.beginPairing('wallbox');
    const held = new Promise<void>(() => undefined);
    const save = home.run.store.savePairing.bind(home.run.store);
    let saves = 0;
    home.run.store.savePairing = (pairing) => {
      saves += 1;
      return saves === 1 ? save(pairing) : held;
    };
    void home.run.pairings.begin(home.run.appliances.get('wallbox')).catch(() => undefined);
    await expect.poll(() => saves).toBeGreaterThan(1);
    await home.crash();
    home.emittedEvents.length = 0;
    await home.start();
    expect(told(home)).toEqual([{ kind: 'pairing_failed', appliance: appliance.id, reason: 'replaced' }]);
    await home.crash();
    await home.start();
    expect(told(home)).toEqual([]);
  });

  test('a device flow that nobody has opened emits no failure event when it expires', async () => {
    await using home = await BrokerHarness.start({ lifetime: 5 * MINUTE });
    const { appliance } = await home.addAppliance('wallbox');
    const outcome = await home.run.deviceFlows.begin(appliance, null);
    if (outcome.kind !== 'begun') throw new Error(outcome.kind);
    rememberSecrets([outcome.authorization.deviceCode.reveal()]);
    await home.time.pass(20 * MINUTE);
    expect(home.run.pairings.newestFor(appliance.id)?.isOpen).toBe(false);
    expect(told(home)).toEqual([]);
  });
});

describe('failed refresh event', () => {
  test.each<[string, Fault, ProblemCode]>([
    ['is asked to wait', { kind: 'answer', status: 503 }, 'portal_deferred'],
    ['is refused', { kind: 'answer', status: 400, body: '{"error":"invalid_grant"}' }, 'refused'],
    [
      'sends unknown client credentials',
      { kind: 'answer', status: 401, body: '{"error":"invalid_client"}' },
      'misconfigured',
    ],
    ['is rejected', { kind: 'answer', status: 403 }, 'portal_rejected'],
    ['gets no response', { kind: 'drop' }, 'answer_lost'],
  ])('a failed refresh emits one event with its problem if the hub %s', async (_, fault, problem) => {
    await using home = await BrokerHarness.start();
    const appliance = await home.addPairedAppliance();
    told(home);
    home.portal.fail('token', fault);
    await home.run.grants.refresh(appliance);
    expect(told(home)).toEqual([{ kind: 'refresh_failed', appliance, problem, took: expect.any(Number) }]);
  });

  test('a refresh that could not be sent emits one failure event without a duration', async () => {
    await using home = await BrokerHarness.start();
    const appliance = await home.addPairedAppliance();
    told(home);
    await home.portal.disconnect();
    await home.run.grants.refresh(appliance);
    expect(told(home)).toEqual([{ kind: 'refresh_failed', appliance, problem: 'portal_unreachable', took: null }]);
    home.configured = false;
    await home.run.grants.refresh(appliance);
    expect(told(home)).toEqual([{ kind: 'refresh_failed', appliance, problem: 'misconfigured', took: null }]);
  });

  test('a refresh whose attempt or result cannot be saved emits one failure event', async () => {
    await using home = await BrokerHarness.start();
    const appliance = await home.addPairedAppliance();
    told(home);
    home.failingWrites.add('beginAttempt');
    await home.run.grants.refresh(appliance);
    const failed = { kind: 'refresh_failed', appliance, problem: 'store_unwritable' };
    expect(told(home)).toEqual([{ ...failed, took: null }]);
    home.failingWrites.clear();
    home.failingWrites.add('replaceGrant');
    await home.run.grants.refresh(appliance);
    expect(told(home)).toEqual([{ ...failed, took: expect.any(Number) }]);
    home.failingWrites.clear();
  });

  test('a refresh that a power cut interrupted emits one failure event once a later start could save its end', async () => {
    await using home = await BrokerHarness.start({ retryLostAnswer: 'late' });
    const appliance = await home.addPairedAppliance();
    const answer = Promise.withResolvers<void>();
    home.portal.fail('token', { kind: 'wait', until: answer.promise });
    void home.run.grants.refresh(appliance);
    await expect.poll(() => home.refreshes).toBe(1);
    const sent = home.time.now();
    told(home);
    await home.crash();
    home.time.reboot(home.time.wall + MINUTE);
    home.failingWrites.add('endAttempt');
    await home.start();
    expect(told(home)).toEqual([]);
    await home.crash();
    home.failingWrites.clear();
    await home.start();
    expect(home.emittedEvents).toMatchObject([{ at: sent }]);
    expect(told(home)).toEqual([{ kind: 'refresh_failed', appliance, problem: 'answer_lost', took: null }]);
    await home.crash();
    await home.start();
    expect(told(home)).toEqual([]);
    answer.resolve();
  });
});

test('a rejected access token emits one event, followed by one for the refresh that replaces it', async () => {
  await using home = await BrokerHarness.start();
  const appliance = await home.addPairedAppliance();
  told(home);
  const token = await home.token(appliance);
  for (let times = 0; times < 3; times++) await home.run.grants.reportRejectedToken(appliance, token);
  await home.run.grants.whenIdle();
  expect(told(home)).toEqual([
    { kind: 'token_refused', appliance },
    { kind: 'refreshed', appliance, took: expect.any(Number) },
  ]);
});

test('an event handler that throws is logged and does not stop the other handlers', () => {
  const lines: string[] = [];
  const say = (event: string) => void lines.push(event);
  const events = new HubEvents(logTo(say));
  const heard: string[] = [];
  events.subscribe(() => {
    throw new Error('no more');
  });
  events.subscribe(({ kind }) => void heard.push(kind));
  events.emit({ kind: 'unpaired', appliance: 'a', at: { boot: '', uptime: 0, wall: 0 } });
  expect(heard).toEqual(['unpaired']);
  expect(lines).toEqual(['event_handler_failed']);
});
