/// <reference lib="dom" />
import { formatDateTime, formatRelativeTime } from './time-format.ts';

/** How often the words are looked at, in ms. */
const UPDATE_INTERVAL = 10_000;

/** What this device's clock is behind the hub's, in ms: either may be wrong. */
let clockOffset = 0;

/** Takes the hub's clock from the page as it has just come. */
export function syncClock(): void {
  const now = Number(document.querySelector('main')?.dataset['now'] ?? '');
  if (now > 0) clockOffset = now - Date.now();
}

/** Tells every time of the page as it is now, exact ones in the time zone of who looks. */
export function updateTimes(): void {
  const { lang } = document.documentElement;
  for (const element of document.querySelectorAll('time')) {
    const wall = Date.parse(element.dateTime);
    const words = element.classList.contains('exact')
      ? formatDateTime(lang, wall, false)
      : formatRelativeTime(lang, wall - Date.now() - clockOffset);
    if (element.textContent !== words) element.textContent = words;
  }
}

/** Keeps the times of the page current. */
export function startTimeUpdates(): void {
  syncClock();
  updateTimes();
  setInterval(updateTimes, UPDATE_INTERVAL);
}
