import { describe, expect, test } from 'vitest';
import { addHistoryEntry, newestFirst, type StoredHistoryEntry } from '../../src/core/reports/history.ts';
import { HOUR } from './samples.ts';

const MIDNIGHT = Date.UTC(2031, 4, 5);

/** Lines as text, such as `refresh_failed answer_lost 1-3 ×2`: the hours and the count. */
function texts(lines: readonly StoredHistoryEntry[]): string[] {
  return lines.map(({ kind, why, first, last, count }) => {
    const hours = [first, last].map((time) => (time - MIDNIGHT) / HOUR);
    return [kind, why, hours.join('-'), `×${count}`].filter((part) => part !== null).join(' ');
  });
}

/** Events of a kind, by their hours. */
const events =
  (kind: StoredHistoryEntry['kind'], why: StoredHistoryEntry['why'] = null) =>
  (hour: number): StoredHistoryEntry => {
    const time = MIDNIGHT + hour * HOUR;
    return { kind, why, first: time, last: time, count: 1 };
  };
const [refreshed, unpaired, paired] = [events('refreshed'), events('unpaired'), events('paired')];
const [deferred, lost] = [events('refresh_failed', 'portal_deferred'), events('refresh_failed', 'answer_lost')];
const unknownClient = events('refresh_failed', 'misconfigured');
const failedPairing = events('pairing_failed', 'misconfigured');

test.each<[string, StoredHistoryEntry[], string[]]>([
  ['refreshes of one day share a line', [refreshed(1), refreshed(2), refreshed(23)], ['refreshed 1-23 ×3']],
  [
    'refreshes of the next day are another line',
    [refreshed(23), refreshed(24), refreshed(25)],
    ['refreshed 23-23 ×1', 'refreshed 24-25 ×2'],
  ],
  [
    'failures with the same reason share a line',
    [deferred(1), lost(2), deferred(3)],
    ['refresh_failed portal_deferred 1-3 ×2', 'refresh_failed answer_lost 2-2 ×1'],
  ],
  [
    'alternating successes and failures share two lines',
    [refreshed(1), deferred(2), refreshed(3), deferred(4)],
    ['refreshed 1-3 ×2', 'refresh_failed portal_deferred 2-4 ×2'],
  ],
  [
    'a failed pairing and a failed refresh with the same reason have separate lines',
    [failedPairing(1), unknownClient(2), failedPairing(3)],
    ['pairing_failed misconfigured 1-3 ×2', 'refresh_failed misconfigured 2-2 ×1'],
  ],
  [
    'each pairing and unpairing is a line, and no other line spans it',
    [refreshed(1), unpaired(2), paired(3), paired(4), refreshed(5)],
    ['refreshed 1-1 ×1', 'unpaired 2-2 ×1', 'paired 3-3 ×1', 'paired 4-4 ×1', 'refreshed 5-5 ×1'],
  ],
  [
    'a clock that was set back widens a line and never inverts its times',
    [refreshed(5), refreshed(4)],
    ['refreshed 4-5 ×2'],
  ],
])('events become history lines by these rules: %s', (_, entries, expected) => {
  expect(texts(entries.reduce<readonly StoredHistoryEntry[]>(addHistoryEntry, []))).toEqual(expected);
});

describe('order of history lines', () => {
  const order = (...lines: [StoredHistoryEntry['kind'], number][]) =>
    newestFirst(lines.map(([kind, last]) => ({ kind, why: null, first: 0, last, count: 1 }))).map(
      ({ kind, last }) => `${kind} ${last}`,
    );

  test('the history shows the line that was extended or added last first', () => {
    const lines = order(['refreshed', 9], ['refresh_failed', 5], ['token_refused', 5], ['pairing_failed', 7]);
    expect(lines).toEqual(['refreshed 9', 'pairing_failed 7', 'token_refused 5', 'refresh_failed 5']);
  });

  test('the order of pairings and neighbouring history lines is kept, even if their times disagree', () => {
    const lines = order(['refreshed', 8], ['unpaired', 2], ['paired', 9], ['refreshed', 6], ['refresh_failed', 7]);
    expect(lines).toEqual(['refresh_failed 7', 'refreshed 6', 'paired 9', 'unpaired 2', 'refreshed 8']);
    expect(order(['paired', 3], ['paired', 2])).toEqual(['paired 2', 'paired 3']);
    expect(order()).toEqual([]);
  });
});
