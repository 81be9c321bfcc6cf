/// <reference lib="dom" />
import { exactTime, relativeTime } from './time-words.ts';

/** How often the words are looked at, in ms. */
const INTERVAL = 10_000;

/** What this device's clock is behind the hub's, in ms: either may be wrong. */
let behind = 0;

/** Takes the hub's clock from the page as it has just come. */
export function learnTime(): void {
  const now = Number(document.querySelector('main')?.dataset['now'] ?? '');
  if (now > 0) behind = now - Date.now();
}

/** Tells every time of the page as it is now, exact ones in the time zone of who looks. */
export function tellTimes(): void {
  const { lang } = document.documentElement;
  for (const element of document.querySelectorAll('time')) {
    const wall = Date.parse(element.dateTime);
    const words = element.classList.contains('exact')
      ? exactTime(lang, wall, false)
      : relativeTime(lang, wall - Date.now() - behind);
    if (element.textContent !== words) element.textContent = words;
  }
}

/** Keeps the times of the page current. */
export function keepTimes(): void {
  learnTime();
  tellTimes();
  setInterval(tellTimes, INTERVAL);
}
