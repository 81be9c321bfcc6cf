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

test('a pairing, the refreshes after it and its end are each told of once, also over a restart', async () => {
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

describe('a pairing that comes to nothing is told of once', () => {
  test('where nobody logs in, also where the hub is started again', async () => {
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

  test('where another takes its place', async () => {
    await using home = await BrokerHarness.start();
    const { appliance } = await home.addAppliance('wallbox');
    await home.beginPairing('wallbox');
    await home.beginPairing('wallbox');
    expect(told(home)).toEqual([{ kind: 'pairing_failed', appliance: appliance.id, reason: 'replaced' }]);
  });

  test('where the hub was cut short while another took its place', async () => {
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

  test('but not where its appliance alone has begun it, and nobody has opened it', async () => {
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

describe('an attempt that brings no new tokens is told of once, with why', () => {
  test.each<[string, Fault, ProblemCode]>([
    ['is asked to wait', { kind: 'answer', status: 503 }, 'portal_deferred'],
    ['is refused', { kind: 'answer', status: 400, body: '{"error":"invalid_grant"}' }, 'refused'],
    ['is not known', { kind: 'answer', status: 401, body: '{"error":"invalid_client"}' }, 'misconfigured'],
    ['is rejected', { kind: 'answer', status: 403 }, 'portal_rejected'],
    ['hears nothing', { kind: 'drop' }, 'answer_lost'],
  ])('where the hub %s', async (_, fault, problem) => {
    await using home = await BrokerHarness.start();
    const appliance = await home.addPairedAppliance();
    told(home);
    home.portal.fail('token', fault);
    await home.run.grants.refresh(appliance);
    expect(told(home)).toEqual([{ kind: 'refresh_failed', appliance, problem, took: expect.any(Number) }]);
  });

  test('where nothing could be sent', async () => {
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

  test('where it can not be written that it begins, or what it brought', async () => {
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

  test('where a power cut came between, when the hub is there again', async () => {
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

test('a token that the cloud refused is told of once, and then the refresh that it provokes', async () => {
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

test('who throws at an event hinders nobody', () => {
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
