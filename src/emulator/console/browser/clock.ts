import type { ClockView } from '../../virtual-clock.ts';
import { change } from './api.ts';
import { find } from './dom.ts';
import { dateAndTime, duration, type Part, part } from './part.ts';

const header = find('#header-clock', HTMLElement);
const offset = find('#offset', HTMLElement);
const form = find('#advance', HTMLFormElement);
const seconds = find('input', HTMLInputElement, form);
let known: { readonly wall: number; readonly at: number } | null = null;

/** The emulator's clock, and how to move it. */
export const clock: Part = part<ClockView>('clock', (answer) => {
  known = { wall: Date.parse(answer.now), at: pageTime() };
  offset.textContent = answer.offset === 0 ? 'as the machine’s' : `${duration(answer.offset)} ahead`;
  header.hidden = false;
  show();
});

/** The emulator's time as far as the page knows, in milliseconds since 1970; null where it does not know. */
function emulatedNow(): number | null {
  return known === null ? null : known.wall + pageTime() - known.at;
}

/** Milliseconds since the page was opened. */
function pageTime(): number {
  return Number(document.timeline.currentTime ?? 0);
}

function show(): void {
  const now = emulatedNow();
  if (now === null) return;
  const text = dateAndTime(new Date(now).toISOString());
  for (const time of document.querySelectorAll('#header-clock time, #clock .now')) time.textContent = `${text} UTC`;
}

async function advance(by: number): Promise<boolean> {
  return await change('POST', 'clock', { advance: by }, `The clock is ${duration(by)} further.`);
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
header.addEventListener('animationiteration', show);
