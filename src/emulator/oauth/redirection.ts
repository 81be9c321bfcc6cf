/**
 * Adds parameters to an address and leaves the rest of it as it is, its own query and fragment included.
 * @param parameters already percent-encoded, such as `code=abc`
 */
export function withParameters(address: string, ...parameters: string[]): string {
  const [front = '', ...fragment] = address.split('#');
  const query = parameters.join('&');
  const joint = !front.includes('?') ? '?' : front.endsWith('?') || front.endsWith('&') ? '' : '&';
  return [`${front}${joint}${query}`, ...fragment].join('#');
}

/** A parameter with its value percent-encoded. */
export function parameter(name: string, value: string): string {
  return `${name}=${encodeURIComponent(value)}`;
}

/** The bytes of a query's parameter just as they were sent, `name=` included; null where it is not there. */
export function rawParameter(query: string, name: string): string | null {
  const sent = query.split('&').find((part) => new URLSearchParams(part).has(name));
  return sent === undefined ? null : `${name}=${sent.includes('=') ? sent.slice(sent.indexOf('=') + 1) : ''}`;
}

/** The address in the form that goes into a Location header, or null where it is not an http(s) URL. */
export function webAddress(text: string): string | null {
  const url = URL.canParse(text) ? new URL(text) : null;
  return url !== null && (url.protocol === 'http:' || url.protocol === 'https:') ? url.href : null;
}
