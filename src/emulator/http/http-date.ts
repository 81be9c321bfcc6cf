let second = Number.NaN;
let text = '';

/** The value of a `Date` header (RFC 9110, 5.6.7), written once a second. @param now milliseconds since 1970 */
export function httpDate(now: number): string {
  if (Math.floor(now / 1000) !== second) {
    second = Math.floor(now / 1000);
    text = new Date(now).toUTCString();
  }
  return text;
}
