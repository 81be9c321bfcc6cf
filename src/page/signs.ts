import { html } from 'ghtml';

/** How a piece of news is: it decides the sign and the colour. */
export type Mood = 'good' | 'bad' | 'warn' | 'waiting' | 'neutral';

/** Drawn, because fonts differ in what they make of a check mark. Paths in a box of 24 by 24. */
const SIGNS: Readonly<Record<Mood, string>> = {
  good: 'M6.5 12.5l3.7 3.7 7.3-7.9',
  bad: 'M12 6.5v7M12 17.4v.1',
  warn: 'M12 6.5v6l4 2.5',
  waiting: 'M7 12v.1M12 12v.1M17 12v.1',
  neutral: 'M12 6.7v.1M12 11.2v6.3',
};

/** A sign in a disc of the mood's colour; words beside it say the same. @returns HTML */
export function sign(mood: Mood): string {
  return html`<svg class="sign ${mood}" viewBox="0 0 24 24" aria-hidden="true"><path d="${SIGNS[mood]}"/></svg>`;
}
