import type { ClockView } from '../../virtual-clock.ts';
import { callApi } from './api.ts';
import { requireElement } from './dom.ts';
import { createSection, formatDateTime, formatDuration, type PageSection } from './section.ts';

const header = requireElement('#header-clock', HTMLElement);
const offset = requireElement('#offset', HTMLElement);
const form = requireElement('#advance', HTMLFormElement);
const seconds = requireElement('input', HTMLInputElement, form);
let known: { readonly wall: number; readonly at: number } | null = null;

/** The emulator's clock, and how to move it. */
export const clockSection: PageSection = createSection<ClockView>('clock', (answer) => {
  known = { wall: Date.parse(answer.now), at: millisecondsSincePageLoad() };
  offset.textContent = answer.offset === 0 ? 'as the machine’s' : `${formatDuration(answer.offset)} ahead`;
  header.hidden = false;
  showClock();
});

/** The emulator's time as far as the page knows, in milliseconds since 1970; null where it does not know. */
function emulatedNow(): number | null {
  return known === null ? null : known.wall + millisecondsSincePageLoad() - known.at;
}

/** Milliseconds since the page was opened. */
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
  return await callApi('POST', 'clock', { advance: by }, `The clock is ${formatDuration(by)} further.`);
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
// The style's animation ticks once a second, as long as the page is seen.
header.addEventListener('animationiteration', showClock);
