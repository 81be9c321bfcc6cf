/** What may be a token in a text: some portals name the one that they refuse. Their own error numbers are kept. */
const POSSIBLE_TOKEN = /(?<!\S)(?![A-Z]+\d+:?(?!\S))(?=\S*(?:\d|[a-z][A-Z]))\S{6,}|\S{25,}/g;
const MAX_LENGTH = 160;

/**
 * What a portal says about an error (`error_description`, RFC 6749, 4.1.2.1 and 5.2), for people: without what may be a
 * token, and at most 160 characters. Empty if it has characters that the standard excludes.
 */
export function printableDescription(text: string): string {
  if (!/^[\x20-\x7e]*$/.test(text)) return '';
  return text.replaceAll(POSSIBLE_TOKEN, '…').slice(0, MAX_LENGTH).trim();
}
