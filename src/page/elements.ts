import { html } from 'ghtml';
import { encodeQr, qrSvgPath } from '../system/qr-code.ts';
import { formatDateTime, formatRelativeTime } from './browser/time-format.ts';
import type { Texts } from './texts/en.ts';

/**
 * A time in words such as "5 minutes ago". The page's script keeps the words current.
 * @param wall ms since 1970
 * @param now ms since 1970, by the same clock
 * @returns HTML
 */
export function timeElement({ language }: Texts, wall: number, now: number): string {
  return html`<time datetime="${rfc3339Utc(wall)}">${formatRelativeTime(language, wall - now)}</time>`;
}

/** By how much a time of the past may lie ahead of the hub's clock and still counts as now, in ms. */
const TOLERATED_LEAD = 60_000;

/**
 * As {@link timeElement}, of something that has happened. If the hub's clock was set back since then, or is slow, the time
 * lies ahead, and the words for it would be wrong: then it is a date. @returns HTML
 */
export function pastTimeElement(texts: Texts, wall: number, now: number): string {
  return wall - now > TOLERATED_LEAD ? dateTimeElement(texts, wall) : timeElement(texts, Math.min(wall, now), now);
}

/** A time as date and time of day. @param wall ms since 1970 @returns HTML */
export function dateTimeElement({ language }: Texts, wall: number): string {
  return html`<time class="exact" datetime="${rfc3339Utc(wall)}">${formatDateTime(language, wall, true)}</time>`;
}

function rfc3339Utc(wall: number): string {
  return new Date(wall).toISOString();
}

/** The severity that a page shows; it decides the icon and the colour. */
export type DisplaySeverity = 'good' | 'bad' | 'warn' | 'waiting' | 'neutral';

/** SVG paths in a box of 24 by 24. Not characters, because fonts draw a check mark differently. */
const ICONS: Readonly<Record<DisplaySeverity, string>> = {
  good: 'M6.5 12.5l3.7 3.7 7.3-7.9',
  bad: 'M12 6.5v7M12 17.4v.1',
  warn: 'M12 6.5v6l4 2.5',
  waiting: 'M7 12v.1M12 12v.1M17 12v.1',
  neutral: 'M12 6.7v.1M12 11.2v6.3',
};

/**
 * An icon in a disc of the severity's colour; screen readers skip it, because the text beside it says the same.
 * @returns HTML
 */
export function icon(severity: DisplaySeverity): string {
  return html`<svg class="icon ${severity}" viewBox="0 0 24 24" aria-hidden="true"><path d="${ICONS[severity]}"/></svg>`;
}

/**
 * A value with a button that copies it; without scripts there is no button.
 * @param control its HTML, which has the ID `id`
 * @param labelId the ID of its label
 * @returns HTML
 */
export function withCopyButton({ installer }: Texts, control: string, id: string, labelId: string): string {
  return html`<div class="copied">!${control}
<button type="button" data-copy="${id}" data-copied="${installer.copied}" aria-describedby="${labelId}" aria-live="polite" hidden>${installer.copy}</button></div>`;
}

/**
 * A QR code as a picture, black on white in every colour scheme, with the quiet zone of ISO/IEC 18004.
 * @param label what it contains, for screen readers
 * @returns HTML; null if the text is too long for a QR code
 */
export function qrSvg(text: string, label: string): string | null {
  const code = encodeQr(text, { ecc: 'L', border: 4 });
  if (code === null) return null;
  const { size } = code;
  return html`<svg class="qr" viewBox="0 0 ${size} ${size}" role="img" aria-label="${label}" shape-rendering="crispEdges"><path fill="#fff" d="M0 0h${size}v${size}H0z"/><path d="${qrSvgPath(code)}"/></svg>`;
}
