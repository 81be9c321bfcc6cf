import type { ClockView } from '../../virtual-clock.ts';
import { callApi } from './api.ts';
import { requireElement } from './dom.ts';
import { createSection, formatDateTime, formatDuration, type PageSection } from './section.ts';

const header = requireElement('#header-clock', HTMLElement);
const offset = requireElement('#offset', HTMLElement);
const form = requireElement('#advance', HTMLFormElement);
const seconds = requireElement('input', HTMLInputElement, form);
let lastKnown: { readonly wall: number; readonly at: number } | null = null;

/** The emulator's clock, and the controls to advance it. */
export const clockSection: PageSection = createSection<ClockView>('clock', (clock) => {
  lastKnown = { wall: Date.parse(clock.now), at: millisecondsSincePageLoad() };
  offset.textContent = clock.offset === 0 ? 'no offset' : `${formatDuration(clock.offset)} ahead`;
  header.hidden = false;
  showClock();
});

/** The emulator's time, in milliseconds since 1970; null if it is not known yet. */
function emulatedNow(): number | null {
  return lastKnown === null ? null : lastKnown.wall + millisecondsSincePageLoad() - lastKnown.at;
}

/** A monotonic time, in milliseconds. */
function millisecondsSincePageLoad(): number {
  return Number(document.timeline.currentTime ?? 0);
}

function showClock(): void {
  const now = emulatedNow();
  if (now === null) return;
  const text = formatDateTime(new Date(now).toISOString());
  for (const time of document.querySelectorAll('#header-clock time, #clock .now')) time.textContent = `${text} UTC`;
}

async function advance(by: number): Promise<boolean> {
  return await callApi('POST', 'clock', { advance: by }, `The clock was advanced by ${formatDuration(by)}.`);
}

for (const button of document.querySelectorAll<HTMLButtonElement>('#clock [data-seconds]')) {
  button.addEventListener('click', () => void advance(Number(button.dataset['seconds'])));
}
form.addEventListener('submit', (event) => {
  event.preventDefault();
  void advance(Number(seconds.value)).then((done) => {
    if (done) form.reset();
  });
});
// The animation of the style sheet iterates once a second, as long as the page is visible.
header.addEventListener('animationiteration', showClock);
