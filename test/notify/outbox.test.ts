import { expect, test } from 'vitest';
import type { NoticeMessage } from '../../src/core/health/notice.ts';
import type { LogFields } from '../../src/core/log.ts';
import { type DeliveryResult, type Hook, Outbox, serializeMessage } from '../../src/notify/outbox.ts';
import { systemRandom } from '../../src/system/random.ts';
import { FakeTime, PendingWork } from '../support/fake-time.ts';
import { logTo } from '../support/log-to.ts';

const MINUTE = 60_000;
const OK: DeliveryResult = { ok: true, detail: 'done', retryable: false };
const FAILED: DeliveryResult = { ok: false, detail: 'answered 500', retryable: true };

function message(appliance: string): NoticeMessage {
  const subject = { appliance, connection: appliance, appliances: [appliance] };
  const problem = { notice: 'pairing_needed', severity: 'error', since: '2031-04-05T06:07:08Z' } as const;
  const hub = { id: 'latchkey-1', name: 'Cellar hub', page: 'https://10.0.0.1:8443/' };
  return { status: 'raised', ...problem, ...subject, message: 'Why', what_to_do: 'What', hub };
}

/** An outbox in virtual time, whose hook returns these results. */
function open(results: DeliveryResult[], defaultResult: DeliveryResult | Promise<DeliveryResult> = OK) {
  const activity = new PendingWork();
  const time = new FakeTime(activity);
  const delivered: { readonly name: string | null; readonly at: number; readonly id: string }[] = [];
  const logged: { readonly event: string; readonly fields: LogFields }[] = [];
  const hook: Hook = {
    kind: 'webhook',
    target: 'https://notify.example',
    async deliver(text, _signal, id) {
      delivered.push({ name: (JSON.parse(text) as NoticeMessage).appliance, at: time.uptime, id });
      return results.shift() ?? defaultResult;
    },
  };
  const line = (event: string, fields: LogFields = {}) => void logged.push({ event, fields });
  const log = logTo(line);
  return {
    outbox: new Outbox(hook, { clock: time, timers: time, random: systemRandom, log }),
    time,
    delivered,
    logged,
  };
}

test('the outbox retries a failed notice with growing delays, and later notices wait', async () => {
  const { outbox, time, delivered, logged } = open([FAILED, FAILED, FAILED]);
  const startedAt = time.uptime;
  outbox.enqueue(message('car'));
  outbox.enqueue(message('wallbox'));
  await time.pass(10 * MINUTE);
  expect(delivered.map(({ name, at }) => [name, (at - startedAt) / 1000])).toEqual([
    ['car', 0],
    ['car', 10],
    ['car', 70],
    ['car', 370],
    ['wallbox', 370],
  ]);
  const ids = delivered.map(({ id }) => id);
  expect(new Set(ids)).toEqual(new Set([ids[0], ids[4]]));
  expect(ids[4]).not.toBe(ids[0]);
  const fields = { notice: 'pairing_needed', appliance: 'car', status: 'raised', hook: 'webhook' };
  expect(logged[0]).toMatchObject({
    event: 'notice_delivery_failed',
    fields: { ...fields, target: 'https://notify.example', error: 'answered 500', retry_in: 10 },
  });
  expect(logged).toHaveLength(3);
});

test('the outbox drops a notice that fails repeatedly, and logs that', async () => {
  const { outbox, time, delivered, logged } = open([], FAILED);
  outbox.enqueue(message('car'));
  await time.pass(100 * MINUTE);
  expect(delivered).toHaveLength(5);
  expect(logged.at(-1)).toMatchObject({ event: 'notice_dropped', fields: { appliance: 'car' } });
  expect(time.armed).toBe(0);
});

test('the outbox does not retry a notice that can not be delivered', async () => {
  const { outbox, time, delivered, logged } = open([{ ...FAILED, retryable: false }]);
  outbox.enqueue(message('car'));
  outbox.enqueue(message('wallbox'));
  await time.pass(MINUTE);
  expect(delivered.map(({ name }) => name)).toEqual(['car', 'wallbox']);
  expect(logged.map(({ event }) => event)).toEqual(['notice_dropped']);
});

test('the outbox delivers one notice at a time, and drops the oldest ones if too many wait', async () => {
  const first = Promise.withResolvers<DeliveryResult>();
  const { outbox, time, delivered, logged } = open([], first.promise);
  for (let number = 0; number < 1101; number++) outbox.enqueue(message(`a${number}`));
  await time.pass(0);
  expect(delivered).toHaveLength(1);
  expect(logged).toHaveLength(100);
  expect(logged[0]).toMatchObject({ event: 'notice_queue_dropped', fields: { count: 1, error: 'the queue is full' } });
  first.resolve(OK);
  await time.pass(0);
  expect(delivered.map(({ name }) => name).slice(0, 2)).toEqual(['a0', 'a101']);
  expect(delivered).toHaveLength(1001);
});

test('the outbox makes no further attempt when the hub ends', async () => {
  const { outbox, time, delivered } = open([], FAILED);
  outbox.enqueue(message('car'));
  outbox.enqueue(message('wallbox'));
  await time.pass(1000);
  await outbox[Symbol.asyncDispose]();
  outbox.enqueue(message('late'));
  await time.pass(100 * MINUTE);
  expect(delivered.map(({ name }) => name)).toEqual(['car']);
  expect(time.armed).toBe(0);
});

test('the outbox logs the notices that wait when the hub ends as one number', async () => {
  const first = Promise.withResolvers<DeliveryResult>();
  const { outbox, time, logged } = open([], first.promise);
  for (let number = 0; number < 500; number++) outbox.enqueue(message(`a${number}`));
  await time.pass(0);
  const ended = outbox[Symbol.asyncDispose]();
  first.resolve(FAILED);
  await ended;
  expect(logged.map(({ event, fields }) => [event, fields['count'] ?? fields['appliance']])).toEqual([
    ['notice_dropped', 'a0'],
    ['notice_queue_dropped', 499],
  ]);
});

test('a notice message is one line of ASCII that parses as the same JSON', () => {
  const notice = { ...message('wallbox'), message: 'Größe 🔑\n"\u2028' };
  const text = serializeMessage(notice);
  expect(text).toMatch(/^[ -~]+\n$/);
  expect(JSON.parse(text)).toEqual(notice);
});

test('a notice message names commands as its reader types them', () => {
  const notice = { ...message('wallbox'), what_to_do: 'Run "latchkey pair wallbox"' };
  const text = serializeMessage(notice, { program: 'a"b', usesSudo: true });
  expect(JSON.parse(text)).toEqual({ ...notice, what_to_do: 'Run "sudo a"b pair wallbox"' });
});
