import { html } from 'ghtml';
import { exactTime, relativeTime } from './browser/time-words.ts';
import type { Texts } from './texts/en.ts';

/**
 * A moment in words such as "5 minutes ago"; the page's script keeps them current.
 * @param wall ms since 1970
 * @param now likewise, by the same clock
 * @returns HTML
 */
export function timeElement({ language }: Texts, wall: number, now: number): string {
  return html`<time datetime="${iso(wall)}">${relativeTime(language, wall - now)}</time>`;
}

/** A moment as date and time of day. @param wall ms since 1970 @returns HTML */
export function exactTimeElement({ language }: Texts, wall: number): string {
  return html`<time class="exact" datetime="${iso(wall)}">${exactTime(language, wall, true)}</time>`;
}

/** RFC 3339 UTC. */
function iso(wall: number): string {
  return new Date(wall).toISOString();
}
