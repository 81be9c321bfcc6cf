import { describe, expect, it } from 'vitest';
import type { HistoryEntry } from '../../src/core/reports/history.ts';
import { lastDays, renderHistory } from '../../src/page/appliance/history.ts';
import { de } from '../../src/page/texts/de.ts';
import { en } from '../../src/page/texts/en.ts';

const NOW = Date.parse('2031-05-14T10:00:00Z');

function entry(kind: HistoryEntry['kind'], day: number, why: HistoryEntry['why'] = null, hour = 9): HistoryEntry {
  const at = `2031-05-${String(day).padStart(2, '0')}T${String(hour).padStart(2, '0')}:00:00Z`;
  return { kind, why, first: at, last: at, count: 1 };
}

const states = (entries: HistoryEntry[], count: number) => lastDays(entries, NOW, count).map(({ state }) => state);

describe('the chart of the last days', () => {
  it('the chart shows the days before the first login as unknown', () => {
    expect(states([entry('paired', 13)], 4)).toEqual(['unknown', 'unknown', 'connected', 'connected']);
  });

  it('the chart shows the worst state of a day, and continues with the last one', () => {
    const entries = [
      entry('refreshed', 13, null, 11),
      entry('refresh_failed', 13, 'portal_unreachable', 9),
      entry('refreshed', 12),
    ];
    expect(states(entries, 3)).toEqual(['connected', 'failing', 'connected']);
  });

  it('the chart shows that a login was needed until there was one', () => {
    const entries = [entry('paired', 13, null, 18), entry('refresh_failed', 11, 'refused'), entry('refreshed', 10)];
    expect(states(entries, 5)).toEqual(['connected', 'needs_pairing', 'needs_pairing', 'needs_pairing', 'connected']);
  });
});

describe('the history of an appliance', () => {
  it('the history says what happened, why and how often, and describes the chart in words', () => {
    const failed = { ...entry('refresh_failed', 14, 'portal_unreachable'), count: 3 };
    const html = renderHistory(en, [failed, entry('paired', 12)], NOW);
    expect(html).toContain('Access could not be refreshed, 3 times: The portal could not be reached.');
    expect(html).toContain(
      'aria-label="The last 14 days. Days connected: 2, days with problems: 1, days on which a login was needed: 0."',
    );
    expect(html).toContain('<time class="exact" datetime="2031-05-14T09:00:00.000Z">14 May 2031, ');
  });

  it('the history calls no login failed that somebody cancelled or replaced', () => {
    const html = renderHistory(
      de,
      [entry('pairing_failed', 14, 'cancelled'), entry('pairing_failed', 13, 'replaced')],
      NOW,
    );
    expect(html).toContain('<p>Anmeldeversuch beendet: Der Versuch wurde am Hub abgebrochen oder übersprungen.</p>');
    expect(html).not.toContain('fehlgeschlagen');
  });

  it('the history names the user who did something, in both languages', () => {
    const entries = [{ ...entry('unpaired', 14), user: '<Anna>' }, entry('paired', 12)];
    const html = renderHistory(en, entries, NOW);
    expect(html).toContain('<p>Disconnected, by &#60;Anna&#62;</p>');
    expect(html).toContain('<p>Connected after a login</p>');
    expect(renderHistory(de, entries, NOW)).toContain('durch &#60;Anna&#62;</p>');
  });

  it('the history of an appliance without events has no chart', () => {
    expect(renderHistory(en, [], NOW)).not.toContain('<svg');
  });

  it('the history of half a year keeps the page small', () => {
    const many = Array.from({ length: 200 }, () => entry('refreshed', 1));
    expect(renderHistory(en, many, NOW).length).toBeLessThan(40_000);
  });
});
