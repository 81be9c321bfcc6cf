import { html } from 'ghtml';
import type { HistoryEntry } from '../../core/reports/history.ts';
import { exactTimeElement, icon, type Severity } from '../elements.ts';
import type { Texts } from '../texts/en.ts';

/** How an appliance was on a day, the worst of it; `unknown` also where it was not connected at all. */
type DayState = 'connected' | 'failing' | 'needs_pairing' | 'unknown';

/** A day (UTC, as history has them) and how it was. */
export interface Day {
  /** Its beginning, in ms since 1970. */
  readonly begins: number;
  readonly state: DayState;
}

const DAY = 86_400_000;
/** The worse ones later. */
const ORDER: readonly DayState[] = ['unknown', 'connected', 'failing', 'needs_pairing'];

/**
 * The last days, today at the end. A day on which nothing was written down is as the one before it ended.
 * @param entries of the history, in any order
 * @param now in ms since 1970
 */
export function lastDays(entries: readonly HistoryEntry[], now: number, count: number): Day[] {
  const events = entries
    .map((entry) => ({ at: Date.parse(entry.last), state: stateAfter(entry) }))
    .filter((event) => event.state !== null)
    .toSorted((a, b) => a.at - b.at);
  const today = Math.floor(now / DAY) * DAY;
  let state: DayState = 'unknown';
  let next = 0;
  /** Goes on to a moment. @returns the worst until then, beginning with what was before */
  const goTo = (end: number): DayState => {
    let worst = state;
    for (let event = events[next]; event !== undefined && event.at < end; event = events[next]) {
      state = event.state ?? state;
      worst = worse(worst, state);
      next += 1;
    }
    return worst;
  };
  return Array.from({ length: count }, (_, index) => {
    const begins = today - (count - 1 - index) * DAY;
    goTo(begins);
    return { begins, state: goTo(begins + DAY) };
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

function worse(one: DayState, other: DayState): DayState {
  return ORDER.indexOf(one) > ORDER.indexOf(other) ? one : other;
}

/** Days of the picture. */
const DAYS = 14;
/** Lines that are shown: with more of them a page would be long to load, and longer to read. */
const MAX_LINES = 60;
/** Lines that are not folded away. */
const NEWEST = 8;

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
export function historyParts(texts: Texts, entries: readonly HistoryEntry[], now: number): string {
  const { history } = texts;
  const list =
    entries.length === 0
      ? html`<p class="quiet">${history.nothing}</p>`
      : lines(texts, entries.slice(0, NEWEST)) + older(texts, entries.slice(NEWEST, MAX_LINES));
  return html`<section class="stack" aria-labelledby="history"><h2 id="history">${history.heading}</h2>
!${entries.length === 0 ? '' : picture(texts, lastDays(entries, now, DAYS))}
!${list}</section>`;
}

function older(texts: Texts, entries: readonly HistoryEntry[]): string {
  if (entries.length === 0) return '';
  return html`<details id="older"><summary>${texts.history.older}</summary>!${lines(texts, entries)}</details>`;
}

function lines(texts: Texts, entries: readonly HistoryEntry[]): string {
  return html`<ol class="history">!${entries.map((entry) => line(texts, entry))}</ol>`;
}

function picture({ history }: Texts, days: readonly Day[]): string {
  const count = (state: DayState) => days.filter((day) => day.state === state).length;
  const summary = history.summary(count('connected'), count('failing'), count('needs_pairing'));
  const bars = days.map(({ state }, index) => bar(state, index * DAY_SIZE.width + (DAY_SIZE.width - DAY_SIZE.bar) / 2));
  const seen = (state: DayState, text: string) =>
    count(state) === 0
      ? ''
      : html`<span><svg class="days" viewBox="0 0 ${DAY_SIZE.bar} ${DAY_SIZE.height}" aria-hidden="true">!${bar(state, 0)}</svg>${text}</span>`;
  return html`<figure class="stack card"><h3>${history.days}</h3>
<svg class="days" viewBox="0 0 ${DAYS * DAY_SIZE.width} ${DAY_SIZE.height}" role="img" aria-label="${summary}">!${bars}</svg>
<figcaption class="legend">!${seen('connected', history.connected)}!${seen('failing', history.failing)}!${seen('needs_pairing', history.needsPairing)}!${seen('unknown', history.unknown)}</figcaption></figure>`;
}

function bar(state: DayState, x: number): string {
  const { style, height } = BARS[state];
  return html`<rect class="${style}" x="${x}" y="${DAY_SIZE.height - height}" width="${DAY_SIZE.bar}" height="${height}" rx="3"/>`;
}

const SEVERITIES: Readonly<Record<DayState, Severity>> = {
  connected: 'good',
  failing: 'warn',
  needs_pairing: 'bad',
  unknown: 'neutral',
};

function line(texts: Texts, entry: HistoryEntry): string {
  const { history, result } = texts;
  const { kind, why, count, first, last } = entry;
  const what = [history.kinds[kind], history.times(count)].filter((part) => part !== '').join(', ');
  const because = why === null ? '' : `: ${{ ...result.reasons, ...history.why }[why]}`;
  const newest = exactTimeElement(texts, Date.parse(last));
  const oldest = count > 1 && first !== last ? html`!${exactTimeElement(texts, Date.parse(first))} &ndash; ` : '';
  return html`<li>!${icon(SEVERITIES[stateAfter(entry) ?? 'unknown'])}<div><p>${what}${because}</p>
<p class="quiet">!${oldest}!${newest}</p></div></li>`;
}
