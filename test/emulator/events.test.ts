import { expect } from 'vitest';
import type { Emulator } from '../../src/emulator/index.ts';
import { get, obtainTokens, requestConfig, startTestEmulator, test } from './portal-client.ts';

/** Subscribes to the events; `next` returns them one by one. */
async function listen(emulator: Emulator) {
  const response = await get(`${emulator.consoleUrl}events`);
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let read = '';
  return {
    response,
    async next(): Promise<{ event: string; id: string | undefined; data: Record<string, unknown> }> {
      for (;;) {
        const end = read.indexOf('\n\n');
        if (end >= 0) {
          const block = read.slice(0, end);
          read = read.slice(end + 2);
          if (block.startsWith(':')) continue;
          const fields = Object.fromEntries(block.split('\n').map((line) => line.split(/: (.*)/s).slice(0, 2)));
          return { event: fields.event, id: fields.id, data: JSON.parse(fields.data) as Record<string, unknown> };
        }
        const { value, done } = (await reader?.read()) ?? { done: true };
        if (done === true || value === undefined) throw new Error('the events ended');
        read += value;
      }
    },
  };
}

test('the event stream reports requests and changes as they happen, with masked secrets', async ({ emulator }) => {
  const events = await listen(emulator);
  expect(events.response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
  const urls = await requestConfig(emulator);
  const first = await events.next();
  expect(first).toMatchObject({ event: 'request', id: '1', data: { endpoint: 'config', status: 200 } });
  expect(first.data).toEqual(JSON.parse(JSON.stringify(emulator.requests[0])));
  await get(urls.authorize_url);
  expect(await events.next()).toMatchObject({ event: 'change', data: { what: 'logins' } });
  expect(await events.next()).toMatchObject({ event: 'request', data: { endpoint: 'authorize' } });
  await obtainTokens(emulator);
  const received: unknown[] = [];
  for (let i = 0; i < 5; i += 1) received.push(await events.next());
  expect(received).toContainEqual({ event: 'change', id: undefined, data: { what: 'grants' } });
  await emulator.reset();
  const subjects = [];
  for (let i = 0; i < 6; i += 1) subjects.push((await events.next()).data['what']);
  expect(subjects.toSorted()).toEqual(['clock', 'devices', 'grants', 'logins', 'requests', 'settings']);
  emulator.advance(60);
  expect(() => emulator.change({ rateLimit: -1 })).toThrow();
  emulator.change({ rateLimit: 5 });
  for (const subject of ['clock', 'settings'])
    expect(await events.next()).toMatchObject({ event: 'change', data: { what: subject } });
  const secrets = emulator.secretsIssued().filter((secret) => JSON.stringify(received).includes(secret));
  expect(secrets).toEqual([]);
});

test('the event stream ends when the emulator closes', async () => {
  const emulator = await startTestEmulator();
  const events = await listen(emulator);
  await emulator.close();
  await expect(events.next()).rejects.toThrow();
});

test('the emulator limits its event listeners, and accepts a new one when others have disconnected', async ({
  emulator,
}) => {
  const leave = new AbortController();
  const url = `${emulator.consoleUrl}events`;
  const listeners = await Promise.all(Array.from({ length: 32 }, () => fetch(url, { signal: leave.signal })));
  expect(listeners.every((response) => response.status === 200)).toBe(true);
  expect((await get(url)).status).toBe(429);
  leave.abort();
  await expect
    .poll(async () => (await fetch(url, { method: 'GET', signal: AbortSignal.timeout(1000) })).status)
    .toBe(200);
});
