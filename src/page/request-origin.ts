import type { FastifyRequest } from 'fastify';

/** Whether no other site's page has sent this: a browser says where a request comes from (Fetch Metadata, `RequestOrigin`). */
export function isSameOrigin({ headers, host }: FastifyRequest): boolean {
  const site = headers['sec-fetch-site'];
  if (site === 'cross-site' || site === 'same-site') return false;
  return headers.origin === undefined || headers.origin.toLowerCase() === `https://${host}`.toLowerCase();
}

/**
 * Whether another site's page loads this into itself, as a picture, a frame or a stream, where it may only lead a browser there.
 * Another port of the hub's own machine is such a site: the session's cookie does not tell ports apart.
 */
export function isCrossSiteEmbedding({ headers }: FastifyRequest): boolean {
  const { 'sec-fetch-site': site, 'sec-fetch-dest': destination = 'document' } = headers;
  return (site === 'cross-site' || site === 'same-site') && destination !== 'document';
}

/** Whether another site, a mail or a chat has led the browser here. */
export function isCrossSiteNavigation({ headers }: FastifyRequest): boolean {
  const site = headers['sec-fetch-site'];
  return (site === 'cross-site' || site === 'same-site') && headers['sec-fetch-dest'] === 'document';
}

/** Whether a browser fetches a page before anybody wants to see it. */
export function isPrefetch({ headers }: FastifyRequest): boolean {
  return ['sec-purpose', 'purpose', 'x-moz', 'x-purpose'].some((name) =>
    /prefetch|preview/i.test(String(headers[name] ?? '')),
  );
}

/** Where something is asked back before it is lost. */
const CONFIRMATION_PATH = /^(\/appliances\/[^/?]+)\/(?:remove|rotate-secret|unpair)(?:\?.*)?$/;

/**
 * Where a browser goes on that another site has led to a question: to what it is about, since the second click of two, meant for
 * that site's page, would say yes. Null where it is none, or the hub's own page has led there.
 */
export function crossSiteConfirmationRedirect({ headers, url }: FastifyRequest): string | null {
  const site = headers['sec-fetch-site'];
  return site === 'cross-site' || site === 'same-site' ? (CONFIRMATION_PATH.exec(url)?.[1] ?? null) : null;
}

/** Longer ones are no page's of ours. */
const MAX_PATH_LENGTH = 2048;
/** Stands for the hub where an address is looked at; no name of anybody's (RFC 2606). */
const PLACEHOLDER_ORIGIN = 'https://hub.invalid';
/** Pages that lead nowhere after signing in. */
const SIGN_IN_OR_OUT_PATH = /^\/sign-(?:in|out)(?:\/|$)/;

/**
 * Where somebody who has signed in is to go on: a page of the hub's own. What browsers would take for another site's
 * (`//elsewhere`, `/\elsewhere`, or with characters in it that they leave out) counts as none.
 * @param wanted as a form, an address or a header has it
 * @returns path and query; `/` where none was wanted
 */
export function safeRedirectPath(wanted: string | undefined): string {
  if (wanted === undefined || wanted.length > MAX_PATH_LENGTH || !/^\/[\x21-\x5b\x5d-\x7e]*$/.test(wanted)) return '/';
  const url = URL.parse(wanted, PLACEHOLDER_ORIGIN);
  if (url?.origin !== PLACEHOLDER_ORIGIN || url.pathname.startsWith('//') || SIGN_IN_OR_OUT_PATH.test(url.pathname))
    return '/';
  return url.pathname + url.search;
}

/**
 * The page that a form was on.
 * @param referer as the browser says it
 * @param host of the request
 */
export function refererPath(referer: string | undefined, host: string): string {
  const url = URL.parse(referer ?? '');
  return url?.host.toLowerCase() === host.toLowerCase() ? safeRedirectPath(url.pathname + url.search) : '/';
}
