/** The content type of RFC 6749's requests, and of a browser's. */
export const FORM_MEDIA_TYPE = 'application/x-www-form-urlencoded';

/**
 * Reads an `application/x-www-form-urlencoded` body. A parameter without a value counts as left out (RFC 6749, 3.2).
 * @returns null where a parameter is repeated: it must not be included more than once (likewise)
 */
export function parseForm(body: string): ReadonlyMap<string, string> | null {
  const all = [...new URLSearchParams(body)];
  const form = new Map(all);
  if (form.size < all.length) return null;
  return new Map(all.filter(([, value]) => value !== ''));
}

/** The media type of a `Content-Type` in lower case, without its parameters; empty where there is none. */
export function mediaTypeOf(contentType = ''): string {
  return contentType === FORM_MEDIA_TYPE ? FORM_MEDIA_TYPE : (contentType.split(';')[0]?.trim().toLowerCase() ?? '');
}
