import { describe, expect, test } from 'vitest';
import type { ProblemCode } from '../../src/core/reports/problem.ts';
import { HubEvents } from '../../src/hub/hub-events.ts';
import { MINUTE } from '../core/samples.ts';
import type { Fault } from '../support/faulty-portal.ts';
import { logTo } from '../support/log-to.ts';
import { BrokerHarness } from './broker-harness.ts';
import { beginFlow } from './logins.ts';

/** Removes the events emitted so far and returns them, without their times. */
function takeEvents(harness: BrokerHarness) {
  return harness.emittedEvents.splice(0).map(({ at: _, ...event }) => event);
}

test('a pairing and each refresh are emitted as one event, and not again after a restart', async () => {
  const { harness, id: appliance } = await BrokerHarness.startPaired();
  expect(takeEvents(harness)).toEqual([{ kind: 'paired', connection: appliance, scope: 'Monitoring' }]);
  const response = harness.portal.hold('token');
  void harness.run.grants.refresh(appliance);
  await expect.poll(() => harness.refreshes).toBe(1);
  harness.time.skip(1500);
  response.resolve();
  await harness.run.grants.whenIdle();
  expect(harness.emittedEvents).toMatchObject([{ at: { boot: 'boot-1', uptime: harness.time.uptime } }]);
  expect(takeEvents(harness)).toEqual([{ kind: 'refreshed', connection: appliance, took: 1500 }]);
  await harness.restart();
  await harness.time.pass(MINUTE);
  expect(takeEvents(harness)).toEqual([]);
});

describe('failed pairing event', () => {
  test('a pairing that expires emits one failure event, also over a restart', async () => {
    const { harness, appliance } = await BrokerHarness.startUnpaired({ lifetime: 10 * MINUTE });
    await harness.beginPairing('wallbox');
    await harness.time.pass(2 * MINUTE);
    await harness.restart();
    await harness.time.pass(20 * MINUTE);
    expect(takeEvents(harness)).toEqual([{ kind: 'pairing_failed', connection: appliance.id, reason: 'expired' }]);
    await harness.crash();
    await harness.start();
    expect(takeEvents(harness)).toEqual([]);
  });

  test('a device flow that nobody has opened emits no failure event when it expires', async () => {
    const { harness, appliance } = await BrokerHarness.startUnpaired({ lifetime: 5 * MINUTE });
    await beginFlow(harness);
    await harness.time.pass(20 * MINUTE);
    expect(harness.run.pairings.newestFor(appliance.id)?.isOpen).toBe(false);
    expect(takeEvents(harness)).toEqual([]);
  });
});

describe('failed refresh event', () => {
  test.each<[string, Fault, ProblemCode]>([
    ['is asked to wait', { kind: 'answer', status: 503 }, 'portal_deferred'],
    ['is refused', { kind: 'answer', status: 400, body: '{"error":"invalid_grant"}' }, 'refused'],
    ['gets no response', { kind: 'drop' }, 'answer_lost'],
  ])('a failed refresh emits one event with its problem if the hub %s', async (_, fault, problem) => {
    const { harness, id: appliance } = await BrokerHarness.startPaired();
    takeEvents(harness);
    harness.portal.fail('token', fault);
    await harness.run.grants.refresh(appliance);
    expect(takeEvents(harness)).toEqual([
      { kind: 'refresh_failed', connection: appliance, problem, took: expect.any(Number) },
    ]);
  });

  test('a refresh that could not be sent emits one failure event without a duration', async () => {
    const { harness, id: appliance } = await BrokerHarness.startPaired();
    takeEvents(harness);
    await harness.portal.disconnect();
    await harness.run.grants.refresh(appliance);
    expect(takeEvents(harness)).toEqual([
      { kind: 'refresh_failed', connection: appliance, problem: 'portal_unreachable', took: null },
    ]);
    harness.configured = false;
    await harness.run.grants.refresh(appliance);
    expect(takeEvents(harness)).toEqual([
      { kind: 'refresh_failed', connection: appliance, problem: 'misconfigured', took: null },
    ]);
  });

  test('a refresh that a power cut interrupted emits one failure event once a later start could save its end', async () => {
    const { harness, id: appliance } = await BrokerHarness.startPaired({ retryLostAnswer: 'late' });
    const response = harness.portal.hold('token');
    void harness.run.grants.refresh(appliance);
    await expect.poll(() => harness.refreshes).toBe(1);
    const sent = harness.time.now();
    takeEvents(harness);
    await harness.crash();
    harness.time.reboot(harness.time.wall + MINUTE);
    harness.failingWrites.add('grants.endAttempt');
    await harness.start();
    expect(takeEvents(harness)).toEqual([]);
    await harness.crash();
    harness.failingWrites.clear();
    await harness.start();
    expect(harness.emittedEvents).toMatchObject([{ at: sent }]);
    expect(takeEvents(harness)).toEqual([
      { kind: 'refresh_failed', connection: appliance, problem: 'answer_lost', took: null },
    ]);
    await harness.crash();
    await harness.start();
    expect(takeEvents(harness)).toEqual([]);
    response.resolve();
  });
});

test('a rejected access token emits one event, followed by one for the refresh that replaces it', async () => {
  const { harness, id: appliance } = await BrokerHarness.startPaired();
  takeEvents(harness);
  const token = await harness.token(appliance);
  for (let times = 0; times < 3; times++) await harness.run.grants.reportRejectedToken(appliance, token);
  await harness.run.grants.whenIdle();
  expect(takeEvents(harness)).toEqual([
    { kind: 'token_refused', connection: appliance },
    { kind: 'refreshed', connection: appliance, took: expect.any(Number) },
  ]);
});

test('an event handler that throws is logged and does not stop the other handlers', () => {
  const lines: string[] = [];
  const log = (event: string) => void lines.push(event);
  const events = new HubEvents(logTo(log));
  const received: string[] = [];
  events.subscribe(() => {
    throw new Error('no more');
  });
  events.subscribe(({ kind }) => void received.push(kind));
  events.emit({ kind: 'unpaired', connection: 'a', at: { boot: '', uptime: 0, wall: 0 } });
  expect(received).toEqual(['unpaired']);
  expect(lines).toEqual(['event_handler_failed']);
});
