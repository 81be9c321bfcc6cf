/** The content type of RFC 6749's requests, and of a browser's. */
export const FORM = 'application/x-www-form-urlencoded';

/** What is wrong with a form, in the words of RFC 6749 section 3.2: parameters must not be included more than once. */
export class FormError extends Error {
  override readonly name = 'FormError';
}

/**
 * Reads an `application/x-www-form-urlencoded` body. A parameter without a value counts as left out (RFC 6749, 3.2).
 * @throws FormError where a parameter comes twice
 */
export function parseForm(body: string): ReadonlyMap<string, string> {
  const form = new Map<string, string>();
  const seen = new Set<string>();
  for (const [name, value] of new URLSearchParams(body)) {
    if (seen.has(name)) throw new FormError('a parameter is repeated');
    seen.add(name);
    if (value !== '') form.set(name, value);
  }
  return form;
}
