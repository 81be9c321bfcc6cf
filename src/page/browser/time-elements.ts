/// <reference lib="dom" />
import { formatDateTime, formatRelativeTime } from './time-format.ts';

/** How often the words are updated, in ms. */
const UPDATE_INTERVAL = 10_000;

/** The hub's clock minus this device's, in ms: either may be wrong. */
let clockOffset = 0;
/** When the hub made the page, by its clock. */
let madeAt = 0;

/** Reads the hub's clock from the page that has just been loaded. */
export function syncClock(): void {
  const now = Number(document.querySelector('main')?.dataset['now'] ?? '');
  if (now <= 0) return;
  clockOffset = now - Date.now();
  madeAt = now;
}

/** Updates every time on the page; exact times are shown in the time zone of the browser. */
export function updateTimes(): void {
  const { lang } = document.documentElement;
  for (const element of document.querySelectorAll('time')) {
    const wall = Date.parse(element.dateTime);
    const left = wall - Date.now() - clockOffset;
    const text = element.classList.contains('exact')
      ? formatDateTime(lang, wall, false)
      : // What was to come when the page was made may be late, but it is not over.
        formatRelativeTime(lang, wall > madeAt ? Math.max(0, left) : left);
    if (element.textContent !== text) element.textContent = text;
  }
}

/** Keeps the times of the page current. */
export function startTimeUpdates(): void {
  syncClock();
  updateTimes();
  setInterval(updateTimes, UPDATE_INTERVAL);
}
