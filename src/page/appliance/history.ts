import { html } from 'ghtml';
import { DAY } from '../../core/clock.ts';
import type { HistoryEntry } from '../../core/reports/history.ts';
import { type DisplaySeverity, dateTimeElement, icon } from '../elements.ts';
import type { Texts } from '../texts/en.ts';

/** The worst state of an appliance on a day; `unknown` also if it was not connected. */
type DayState = 'connected' | 'failing' | 'needs_pairing' | 'unknown';

/** A day (UTC, as in the history) and its state. */
export interface HistoryDay {
  /** Its start, in ms since 1970. */
  readonly begins: number;
  readonly state: DayState;
}

/** In rising order of severity. */
const STATES_BY_SEVERITY: readonly DayState[] = ['unknown', 'connected', 'failing', 'needs_pairing'];

/**
 * The last days, with today at the end. A day without an entry has the state in which the day before ended.
 * @param entries of the history, in any order
 * @param now in ms since 1970
 */
export function lastDays(entries: readonly HistoryEntry[], now: number, count: number): HistoryDay[] {
  const events = entries
    .map((entry) => ({ at: Date.parse(entry.last), state: stateAfter(entry) }))
    .filter((event) => event.state !== null)
    .toSorted((a, b) => a.at - b.at);
  const today = Math.floor(now / DAY) * DAY;
  let state: DayState = 'unknown';
  let next = 0;
  /** Consumes the events before a time. @returns the worst state until then, including the state at the start */
  const advanceTo = (end: number): DayState => {
    let worst = state;
    for (let event = events[next]; event !== undefined && event.at < end; event = events[next]) {
      state = event.state ?? state;
      worst = worseOf(worst, state);
      next += 1;
    }
    return worst;
  };
  return Array.from({ length: count }, (_, index) => {
    const begins = today - (count - 1 - index) * DAY;
    advanceTo(begins);
    return { begins, state: advanceTo(begins + DAY) };
  });
}

/** The state of an appliance after an entry; null if the entry does not change it. */
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

/** Days in the chart. */
const CHART_DAYS = 14;
/** Entries on the page; more would take long to load and to read. */
const MAX_ENTRIES = 60;
/** Entries that are not folded away. */
const UNFOLDED_ENTRIES = 8;

/** Width and height of a day in the chart, and the width of its bar. */
const DAY_SIZE = { width: 24, height: 44, bar: 18 };

/** Severity and bar height of each state: colour alone must not carry the meaning. */
const LOOKS: Readonly<Record<DayState, { readonly severity: DisplaySeverity; readonly height: number }>> = {
  connected: { severity: 'good', height: 44 },
  failing: { severity: 'warn', height: 30 },
  needs_pairing: { severity: 'bad', height: 18 },
  unknown: { severity: 'neutral', height: 4 },
};

/** An appliance's history: a chart of the last days, and a list with the newest entry first. @returns HTML */
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
  const legend = (state: DayState, text: string) =>
    count(state) === 0
      ? ''
      : html`<span><svg class="days" viewBox="0 0 ${DAY_SIZE.bar} ${DAY_SIZE.height}" aria-hidden="true">!${renderBar(state, 0)}</svg>${text}</span>`;
  return html`<figure class="stack card"><h3>${history.days}</h3>
<svg class="days" viewBox="0 0 ${CHART_DAYS * DAY_SIZE.width} ${DAY_SIZE.height}" role="img" aria-label="${summary}">!${bars}</svg>
<figcaption class="legend">!${legend('connected', history.connected)}!${legend('failing', history.failing)}!${legend('needs_pairing', history.needsPairing)}!${legend('unknown', history.unknown)}</figcaption></figure>`;
}

function renderBar(state: DayState, x: number): string {
  const { severity, height } = LOOKS[state];
  return html`<rect class="${severity}" x="${x}" y="${DAY_SIZE.height - height}" width="${DAY_SIZE.bar}" height="${height}" rx="3"/>`;
}

function renderEntry(texts: Texts, entry: HistoryEntry): string {
  const { history, result } = texts;
  const { kind, why, count, first, last, user } = entry;
  const by = user === undefined ? '' : history.by(user);
  const what = why === 'cancelled' || why === 'replaced' ? history.loginEnded : history.kinds[kind];
  const description = [what, by, history.repeatCount(count)].filter((part) => part !== '').join(', ');
  const reason = why === null ? '' : `: ${{ ...result.reasons, ...history.failureReasons }[why]}`;
  const newest = dateTimeElement(texts, Date.parse(last));
  const oldest = count > 1 && first !== last ? html`!${dateTimeElement(texts, Date.parse(first))} &ndash; ` : '';
  return html`<li>!${icon(LOOKS[stateAfter(entry) ?? 'unknown'].severity)}<div><p>${description}${reason}</p>
<p class="quiet">!${oldest}!${newest}</p></div></li>`;
}
