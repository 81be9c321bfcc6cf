import { html } from 'ghtml';
import type { HistoryEntry } from '../../core/reports/history.ts';
import { type Mood, sign } from '../signs.ts';
import type { Texts } from '../texts/en.ts';
import { exactTimeElement } from '../times.ts';
import { type Day, type DayState, lastDays, stateAfter } from './history-days.ts';

/** Days of the picture. */
const DAYS = 14;
/** Lines that are shown: with more of them a page would be long to load, and longer to read. */
const MOST_LINES = 60;
/** Lines that are not folded away. */
const NEWEST = 8;

/** Width and height of a day's place in the picture, and what its bar takes of that. */
const PLACE = { width: 24, height: 44, bar: 18 };

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
      : lines(texts, entries.slice(0, NEWEST)) + older(texts, entries.slice(NEWEST, MOST_LINES));
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
  const bars = days.map(({ state }, index) => bar(state, index * PLACE.width + (PLACE.width - PLACE.bar) / 2));
  const seen = (state: DayState, text: string) =>
    count(state) === 0
      ? ''
      : html`<span><svg class="days" viewBox="0 0 ${PLACE.bar} ${PLACE.height}" aria-hidden="true">!${bar(state, 0)}</svg>${text}</span>`;
  return html`<figure class="stack card"><h3>${history.days}</h3>
<svg class="days" viewBox="0 0 ${DAYS * PLACE.width} ${PLACE.height}" role="img" aria-label="${summary}">!${bars}</svg>
<figcaption class="legend">!${seen('connected', history.connected)}!${seen('failing', history.failing)}!${seen('needs_pairing', history.needsPairing)}!${seen('unknown', history.unknown)}</figcaption></figure>`;
}

function bar(state: DayState, x: number): string {
  const { style, height } = BARS[state];
  return html`<rect class="${style}" x="${x}" y="${PLACE.height - height}" width="${PLACE.bar}" height="${height}" rx="3"/>`;
}

const MOODS: Readonly<Record<DayState, Mood>> = {
  connected: 'good',
  failing: 'warn',
  needs_pairing: 'bad',
  unknown: 'neutral',
};

function line(texts: Texts, entry: HistoryEntry): string {
  const { history } = texts;
  const { kind, why, count, first, last } = entry;
  const what = [history.kinds[kind], ...(why === null ? [] : [history.why[why]])].join(': ');
  const often = history.times(count);
  const newest = exactTimeElement(texts, Date.parse(last));
  const oldest = count > 1 && first !== last ? html`!${exactTimeElement(texts, Date.parse(first))} &ndash; ` : '';
  return html`<li>!${sign(MOODS[stateAfter(entry) ?? 'unknown'])}<div><p>${often === '' ? what : `${what}, ${often}`}</p>
<p class="quiet">!${oldest}!${newest}</p></div></li>`;
}
