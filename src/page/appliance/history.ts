import { html } from 'ghtml';
import type { HistoryEntry } from '../../core/reports/history.ts';
import { type DisplaySeverity, dateTimeElement, icon } from '../elements.ts';
import type { Texts } from '../texts/en.ts';

/** How an appliance was on a day, the worst of it; `unknown` also where it was not connected at all. */
type DayState = 'connected' | 'failing' | 'needs_pairing' | 'unknown';

/** A day (UTC, as history has them) and how it was. */
export interface HistoryDay {
  /** Its beginning, in ms since 1970. */
  readonly begins: number;
  readonly state: DayState;
}

const DAY_MS = 86_400_000;
/** The worse ones later. */
const STATES_BY_SEVERITY: readonly DayState[] = ['unknown', 'connected', 'failing', 'needs_pairing'];

/**
 * The last days, today at the end. A day on which nothing was written down is as the one before it ended.
 * @param entries of the history, in any order
 * @param now in ms since 1970
 */
export function lastDays(entries: readonly HistoryEntry[], now: number, count: number): HistoryDay[] {
  const events = entries
    .map((entry) => ({ at: Date.parse(entry.last), state: stateAfter(entry) }))
    .filter((event) => event.state !== null)
    .toSorted((a, b) => a.at - b.at);
  const today = Math.floor(now / DAY_MS) * DAY_MS;
  let state: DayState = 'unknown';
  let next = 0;
  /** Goes on to a moment. @returns the worst until then, beginning with what was before */
  const goTo = (end: number): DayState => {
    let worst = state;
    for (let event = events[next]; event !== undefined && event.at < end; event = events[next]) {
      state = event.state ?? state;
      worst = worseOf(worst, state);
      next += 1;
    }
    return worst;
  };
  return Array.from({ length: count }, (_, index) => {
    const begins = today - (count - 1 - index) * DAY_MS;
    goTo(begins);
    return { begins, state: goTo(begins + DAY_MS) };
  });
}

/** How an appliance is after an entry; null where that changes nothing. */
function stateAfter({ kind, why }: Pick<HistoryEntry, 'kind' | 'why'>): DayState | null {
  switch (kind) {
    case 'paired':
    case 'refreshed':
      return 'connected';
    case 'refresh_failed':
      return why === 'refused' ? 'needs_pairing' : 'failing';
    case 'token_refused':
      return 'failing';
    case 'unpaired':
      return 'unknown';
    case 'pairing_failed':
      return null;
  }
}

function worseOf(one: DayState, other: DayState): DayState {
  return STATES_BY_SEVERITY.indexOf(one) > STATES_BY_SEVERITY.indexOf(other) ? one : other;
}

/** Days of the picture. */
const CHART_DAYS = 14;
/** Lines that are shown: with more of them a page would be long to load, and longer to read. */
const MAX_ENTRIES = 60;
/** Lines that are not folded away. */
const UNFOLDED_ENTRIES = 8;

/** Width and height of a day's place in the picture, and what its bar takes of that. */
const DAY_SIZE = { width: 24, height: 44, bar: 18 };

/** The state's class, and the height of its bar: it tells what colour alone must not. */
const BARS: Readonly<Record<DayState, { readonly style: string; readonly height: number }>> = {
  connected: { style: 'good', height: 44 },
  failing: { style: 'warn', height: 30 },
  needs_pairing: { style: 'bad', height: 18 },
  unknown: { style: 'none', height: 4 },
};

/** What happened to an appliance: a picture of the last days, and a list, the newest first. @returns HTML */
export function renderHistory(texts: Texts, entries: readonly HistoryEntry[], now: number): string {
  const { history } = texts;
  const list =
    entries.length === 0
      ? html`<p class="quiet">${history.empty}</p>`
      : renderEntries(texts, entries.slice(0, UNFOLDED_ENTRIES)) +
        renderOlderEntries(texts, entries.slice(UNFOLDED_ENTRIES, MAX_ENTRIES));
  return html`<section class="stack" aria-labelledby="history"><h2 id="history">${history.heading}</h2>
!${entries.length === 0 ? '' : renderChart(texts, lastDays(entries, now, CHART_DAYS))}
!${list}</section>`;
}

function renderOlderEntries(texts: Texts, entries: readonly HistoryEntry[]): string {
  if (entries.length === 0) return '';
  return html`<details id="older"><summary>${texts.history.olderEntries}</summary>!${renderEntries(texts, entries)}</details>`;
}

function renderEntries(texts: Texts, entries: readonly HistoryEntry[]): string {
  return html`<ol class="history">!${entries.map((entry) => renderEntry(texts, entry))}</ol>`;
}

function renderChart({ history }: Texts, days: readonly HistoryDay[]): string {
  const count = (state: DayState) => days.filter((day) => day.state === state).length;
  const summary = history.summary(count('connected'), count('failing'), count('needs_pairing'));
  const bars = days.map(({ state }, index) =>
    renderBar(state, index * DAY_SIZE.width + (DAY_SIZE.width - DAY_SIZE.bar) / 2),
  );
  const seen = (state: DayState, text: string) =>
    count(state) === 0
      ? ''
      : html`<span><svg class="days" viewBox="0 0 ${DAY_SIZE.bar} ${DAY_SIZE.height}" aria-hidden="true">!${renderBar(state, 0)}</svg>${text}</span>`;
  return html`<figure class="stack card"><h3>${history.days}</h3>
<svg class="days" viewBox="0 0 ${CHART_DAYS * DAY_SIZE.width} ${DAY_SIZE.height}" role="img" aria-label="${summary}">!${bars}</svg>
<figcaption class="legend">!${seen('connected', history.connected)}!${seen('failing', history.failing)}!${seen('needs_pairing', history.needsPairing)}!${seen('unknown', history.unknown)}</figcaption></figure>`;
}

function renderBar(state: DayState, x: number): string {
  const { style, height } = BARS[state];
  return html`<rect class="${style}" x="${x}" y="${DAY_SIZE.height - height}" width="${DAY_SIZE.bar}" height="${height}" rx="3"/>`;
}

const SEVERITIES: Readonly<Record<DayState, DisplaySeverity>> = {
  connected: 'good',
  failing: 'warn',
  needs_pairing: 'bad',
  unknown: 'neutral',
};

function renderEntry(texts: Texts, entry: HistoryEntry): string {
  const { history, result } = texts;
  const { kind, why, count, first, last } = entry;
  const what = [history.kinds[kind], history.repeatCount(count)].filter((part) => part !== '').join(', ');
  const because = why === null ? '' : `: ${{ ...result.reasons, ...history.failureReasons }[why]}`;
  const newest = dateTimeElement(texts, Date.parse(last));
  const oldest = count > 1 && first !== last ? html`!${dateTimeElement(texts, Date.parse(first))} &ndash; ` : '';
  return html`<li>!${icon(SEVERITIES[stateAfter(entry) ?? 'unknown'])}<div><p>${what}${because}</p>
<p class="quiet">!${oldest}!${newest}</p></div></li>`;
}
