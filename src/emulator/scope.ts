/** A scope: names with one space between them (RFC 6749, 3.3). */
const SCOPE = /^[\x21\x23-\x5B\x5D-\x7E]+( [\x21\x23-\x5B\x5D-\x7E]+)*$/;

export function isScope(text: string): boolean {
  return SCOPE.test(text);
}
