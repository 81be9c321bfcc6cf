import { stripVTControlCharacters } from 'node:util';
import { beforeEach, expect, test } from 'vitest';
import type { HistoryEntry } from '../../../src/core/reports/history.ts';
import { runLatchkey, shareFakeAdministration } from '../command.ts';

const hub = shareFakeAdministration();

beforeEach(() => {
  hub.administration.appliances.clear();
  hub.administration.set({ name: 'wallbox', state: 'active' });
  hub.administration.events = [];
});

/** In a time zone in which one UTC day spans two local days. */
const show = (...args: string[]) => runLatchkey(['history', ...args], { ...hub.env, TZ: 'Europe/Berlin' });

const ENTRIES: HistoryEntry[] = [
  { kind: 'refreshed', why: null, first: '2031-05-05T22:10:00Z', last: '2031-05-06T21:50:00Z', count: 27 },
  {
    kind: 'refresh_failed',
    why: 'misconfigured',
    first: '2031-05-05T20:00:00Z',
    last: '2031-05-05T23:30:00Z',
    count: 1234,
  },
  { kind: 'token_refused', why: null, first: '2031-05-05T09:00:00Z', last: '2031-05-05T09:00:30Z', count: 2 },
  { kind: 'paired', why: null, first: '2031-05-05T08:00:00Z', last: '2031-05-05T08:00:00Z', count: 1 },
  { kind: 'unpaired', why: null, first: '2031-01-05T07:00:00Z', last: '2031-01-05T07:00:00Z', count: 1, user: 'Anna' },
];

test('history prints a table of 80 columns in plain words and local time, newest first, or the entries as JSON', async () => {
  hub.administration.events = ENTRIES;
  const { status, stdout, stderr } = await show('wallbox');
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(JSON.parse((await show('wallbox', '--json')).stdout)).toEqual(ENTRIES);
  expect(stripVTControlCharacters(stdout).trimEnd().split('\n')).toEqual([
    'WHEN                      TIMES  WHAT',
    '2031-05-06 00:10 – 23:50  ×27    refreshed',
    '2031-05-05 22:00 – 01:30  ×1234  not refreshed: wrong portal settings',
    '2031-05-05 11:00          ×2     the portal rejected its token',
    '2031-05-05 10:00                 paired',
    '2031-01-05 08:00                 unpaired, by Anna',
  ]);
});

test('history describes every reason in words that fit into the line', async () => {
  const pairing = ['refused_by_user', 'expired', 'replaced', 'cancelled', 'portal_rejected', 'foreign_origin'] as const;
  const more = ['code_refused', 'answer_lost', 'misconfigured', 'client_unknown'] as const;
  const refresh = ['portal_unreachable', 'portal_deferred', 'portal_rejected', 'answer_lost', 'misconfigured'] as const;
  const others = ['clock_unknown', 'store_unwritable', 'refused'] as const;
  const times = { first: '2031-05-05T20:00:00Z', last: '2031-05-05T23:30:00Z', count: 1234 };
  hub.administration.events = [
    ...[...pairing, ...more].map((why) => ({ kind: 'pairing_failed', why, ...times }) as const),
    ...[...refresh, ...others].map((why) => ({ kind: 'refresh_failed', why, ...times }) as const),
  ];
  const { stdout } = await show('wallbox');
  const lines = stdout.trimEnd().split('\n');
  expect(new Set(lines).size).toBe(1 + hub.administration.events.length);
  for (const line of lines) {
    expect(line).not.toMatch(/_|null|undefined/);
    expect([...line].length).toBeLessThanOrEqual(80);
  }
});

test('history says what to do if nothing has happened yet', async () => {
  expect(await show('wallbox')).toMatchObject({
    status: 0,
    stdout: 'There is no history of wallbox yet. If it is not paired: latchkey pair wallbox\n',
  });
  expect((await show('wallbox', '--json')).stdout).toBe('[]\n');
});
