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
  const empty: string[] = [];
  new URLSearchParams(body).forEach((value, name) => {
    if (form.has(name)) throw new FormError('a parameter is repeated');
    form.set(name, value);
    if (value === '') empty.push(name);
  });
  for (const name of empty) form.delete(name);
  return form;
}
