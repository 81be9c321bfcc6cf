/** Longer ones are no page's of ours. */
const LONGEST = 2048;
/** Stands for the hub where an address is looked at; no name of anybody's (RFC 2606). */
const ORIGIN = 'https://hub.invalid';
/** Pages that lead nowhere after signing in. */
const SIGNING = /^\/sign-(?:in|out)(?:\/|$)/;

/**
 * Where somebody who has signed in is to go on: a page of the hub's own. What browsers would take for another site's
 * (`//elsewhere`, `/\elsewhere`, or with characters in it that they leave out) counts as none.
 * @param wanted as a form, an address or a header has it
 * @returns path and query; `/` where none was wanted
 */
export function ownPath(wanted: string | undefined): string {
  if (wanted === undefined || wanted.length > LONGEST || !/^\/[\x21-\x5b\x5d-\x7e]*$/.test(wanted)) return '/';
  const url = URL.parse(wanted, ORIGIN);
  if (url?.origin !== ORIGIN || url.pathname.startsWith('//') || SIGNING.test(url.pathname)) return '/';
  return url.pathname + url.search;
}

/**
 * The page that a form was on.
 * @param referer as the browser says it
 * @param host of the request
 */
export function pageOfForm(referer: string | undefined, host: string): string {
  const url = URL.parse(referer ?? '');
  return url?.host.toLowerCase() === host.toLowerCase() ? ownPath(url.pathname + url.search) : '/';
}
