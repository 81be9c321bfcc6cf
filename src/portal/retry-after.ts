/**
 * Parses a `Retry-After` header (RFC 9110, 10.2.3): seconds, or a date. A date is compared with the sender's own
 * `Date`, because the hub's clock may be wrong.
 * @returns milliseconds; null if the header is absent or invalid
 */
export function parseRetryAfter(header: string, portalTime: number | null): number | null {
  const text = header.trim();
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const date = parseHttpDate(text);
  if (date === null || portalTime === null) return null;
  return Math.max(0, date - portalTime);
}

/** The asctime form of a date, which has no time zone. */
const ASCTIME_PATTERN = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}$/;

/**
 * Parses the three forms of a date in a header (RFC 9110, 5.6.7).
 * @returns ms since 1970; null for anything else, such as "-5", which `Date.parse` accepts
 */
export function parseHttpDate(text: string): number | null {
  const date = Date.parse(text.endsWith(' GMT') ? text : ASCTIME_PATTERN.test(text) ? `${text} GMT` : '');
  return Number.isNaN(date) ? null : date;
}
