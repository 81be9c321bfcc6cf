import { find } from './dom.ts';

const bar = find('#notice', HTMLElement);
const text = find('span', HTMLElement, bar);

find('button', HTMLButtonElement, bar).addEventListener('click', () => {
  bar.hidden = true;
});
// The style fades good news out after a while; bad news stays until it was read.
bar.addEventListener('animationend', () => {
  bar.hidden = true;
});

/** Tells the person what came of what was asked for; screen readers say it aloud. */
export function notice(message: string, kind: 'good' | 'bad'): void {
  bar.hidden = true;
  text.textContent = message;
  bar.className = kind;
  bar.hidden = false;
}
