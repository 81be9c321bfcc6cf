/**
 * Reads a `Retry-After` header (RFC 9110, 10.2.3): seconds, or a date, which is held against the sender's own `Date`
 * because the hub's clock may be wrong.
 * @returns milliseconds, or null where there is nothing usable
 */
export function parseRetryAfter(header: string, portalTime: number | null): number | null {
  const text = header.trim();
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const date = parseHttpDate(text);
  if (date === null || portalTime === null) return null;
  return Math.max(0, date - portalTime);
}

/** The oldest form of a date, which goes without a zone. */
const ASCTIME_PATTERN = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}$/;

/**
 * Reads a date in a header (RFC 9110, 5.6.7: three forms), in ms since 1970; null for anything else: JavaScript takes
 * "-5" for one.
 */
export function parseHttpDate(text: string): number | null {
  const date = Date.parse(text.endsWith(' GMT') ? text : ASCTIME_PATTERN.test(text) ? `${text} GMT` : '');
  return Number.isNaN(date) ? null : date;
}
