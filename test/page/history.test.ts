import { describe, expect, it } from 'vitest';
import type { HistoryEntry } from '../../src/core/reports/history.ts';
import { lastDays, renderHistory } from '../../src/page/appliance/history.ts';
import { en } from '../../src/page/texts/en.ts';

const NOW = Date.parse('2031-05-14T10:00:00Z');

function entry(kind: HistoryEntry['kind'], day: number, why: HistoryEntry['why'] = null, hour = 9): HistoryEntry {
  const at = `2031-05-${String(day).padStart(2, '0')}T${String(hour).padStart(2, '0')}:00:00Z`;
  return { kind, why, first: at, last: at, count: 1 };
}

const states = (entries: HistoryEntry[], count: number) => lastDays(entries, NOW, count).map(({ state }) => state);

describe('the picture of the last days', () => {
  it('knows nothing of the days before the first login', () => {
    expect(states([entry('paired', 13)], 4)).toEqual(['unknown', 'unknown', 'connected', 'connected']);
  });

  it('shows the worst of a day, and goes on with how it ended', () => {
    const entries = [
      entry('refreshed', 13, null, 11),
      entry('refresh_failed', 13, 'portal_unreachable', 9),
      entry('refreshed', 12),
    ];
    expect(states(entries, 3)).toEqual(['connected', 'failing', 'connected']);
  });

  it('shows that a login was needed until there was one', () => {
    const entries = [entry('paired', 13, null, 18), entry('refresh_failed', 11, 'refused'), entry('refreshed', 10)];
    expect(states(entries, 5)).toEqual(['connected', 'needs_pairing', 'needs_pairing', 'needs_pairing', 'connected']);
  });

  it('takes what happened before its first day into account, and a login that came to nothing for nothing', () => {
    const entries = [entry('pairing_failed', 13, 'expired'), entry('paired', 1), entry('unpaired', 12)];
    expect(states(entries, 4)).toEqual(['connected', 'connected', 'unknown', 'unknown']);
  });
});

describe('the history', () => {
  it('says what happened, why and how often, and the picture in words too', () => {
    const failed = { ...entry('refresh_failed', 14, 'portal_unreachable'), count: 3 };
    const html = renderHistory(en, [failed, entry('paired', 12)], NOW);
    expect(html).toContain('Could not be refreshed, 3 times: The portal could not be reached.');
    expect(html).toContain('aria-label="The last 14 days: connected on 2, held up on 1, in need of a login on 0."');
    expect(html).toContain('<time class="exact" datetime="2031-05-14T09:00:00.000Z">14 May 2031, ');
  });

  it('of an appliance to which nothing has happened is no picture', () => {
    expect(renderHistory(en, [], NOW)).not.toContain('<svg');
  });

  it('of half a year does not make the page heavy', () => {
    const many = Array.from({ length: 200 }, () => entry('refreshed', 1));
    expect(renderHistory(en, many, NOW).length).toBeLessThan(40_000);
  });
});
