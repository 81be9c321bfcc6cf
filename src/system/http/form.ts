/** The media type of requests of RFC 6749, and of browser forms. */
export const FORM_MEDIA_TYPE = 'application/x-www-form-urlencoded';

/**
 * Parses an `application/x-www-form-urlencoded` body. A parameter without a value counts as omitted (RFC 6749, 3.2).
 * @param repeatable the parameters of which only the last counts
 * @returns null if another one is repeated, which RFC 6749, 3.2 forbids
 */
export function parseForm(body: string, repeatable: readonly string[] = []): ReadonlyMap<string, string> | null {
  const all = [...new URLSearchParams(body)];
  const single = all.filter(([name]) => !repeatable.includes(name));
  if (new Map(single).size < single.length) return null;
  return new Map(all.filter(([, value]) => value !== ''));
}

/** The media type of a `Content-Type` in lower case, without its parameters; empty if there is none. */
export function mediaTypeOf(contentType = ''): string {
  return contentType === FORM_MEDIA_TYPE ? FORM_MEDIA_TYPE : (contentType.split(';')[0]?.trim().toLowerCase() ?? '');
}
