import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyRequest } from 'fastify';

/** Whether a page of another origin caused the request, by the browser's Fetch Metadata; false if it sends none. */
export function isCrossOriginFetch({ 'sec-fetch-site': site }: IncomingHttpHeaders): boolean {
  return site === 'cross-site' || site === 'same-site';
}

/** Whether the request did not come from another site's page, by the browser's Fetch Metadata and `Origin` headers. */
export function isSameOrigin({ headers, host }: FastifyRequest): boolean {
  if (isCrossOriginFetch(headers)) return false;
  return headers.origin === undefined || headers.origin.toLowerCase() === `https://${host}`.toLowerCase();
}

/**
 * Whether another site's page loads this as a picture, a frame or a stream instead of navigating to it. Another port of
 * the hub's machine counts as another site, although the browser sends it the same cookies.
 */
export function isCrossSiteEmbedding({ headers }: FastifyRequest): boolean {
  return isCrossOriginFetch(headers) && (headers['sec-fetch-dest'] ?? 'document') !== 'document';
}

/** Whether a link on another site, in a mail or in a chat opened this page. */
export function isCrossSiteNavigation({ headers }: FastifyRequest): boolean {
  return isCrossOriginFetch(headers) && headers['sec-fetch-dest'] === 'document';
}

/** Whether a browser fetches a page before its user opens it. */
export function isPrefetch({ headers }: FastifyRequest): boolean {
  return ['sec-purpose', 'purpose', 'x-moz', 'x-purpose'].some((name) =>
    /prefetch|preview/i.test(String(headers[name] ?? '')),
  );
}

/** Pages that ask for confirmation before something is lost. */
const CONFIRMATION_PATH = /^(\/(?:appliances|connections)\/[^/?]+)\/(?:move|remove|rotate-secret|unpair)(?:\?.*)?$/;
/** The page that asks whether an appliance may use its connection. */
const APPROVAL_PATH = /^(\/pair)\/approve(\?.*)?$/;

/**
 * Where to redirect a browser that another site sent to a confirmation: to the page above it. Otherwise a double
 * click, meant for that site's page, could confirm (clickjacking). Null for other pages, and for links of the hub's own
 * pages.
 */
export function crossSiteConfirmationRedirect({ headers, url, ingress }: FastifyRequest): string | null {
  if (!isCrossOriginFetch(headers)) return null;
  // `/pair` is only at the hub's own address.
  if (ingress !== undefined && APPROVAL_PATH.test(url)) return '/';
  const [, page, query = ''] = APPROVAL_PATH.exec(url) ?? CONFIRMATION_PATH.exec(url) ?? [];
  return page === undefined ? null : page + query;
}

/** Longer than every path of the hub's pages. */
const MAX_PATH_LENGTH = 2048;
/** Stands for the hub while a path is parsed; `.invalid` is reserved (RFC 2606). */
const PLACEHOLDER_ORIGIN = 'https://hub.invalid';
/** Pages that are no target after a sign-in. */
const SIGN_IN_OR_OUT_PATH = /^\/sign-(?:in|out)(?:\/|$)/;

/**
 * Where to redirect after a sign-in: a page of the hub itself. Rejects what browsers would resolve to another site
 * (`//elsewhere`, `/\elsewhere`, or characters that they drop).
 * @param target from a form, an address or a header
 * @returns path and query; `/` if there is no valid target
 */
export function safeRedirectPath(target: string | undefined): string {
  if (target === undefined || target.length > MAX_PATH_LENGTH || !/^\/[\x21-\x5b\x5d-\x7e]*$/.test(target)) return '/';
  const url = URL.parse(target, PLACEHOLDER_ORIGIN);
  if (url?.origin !== PLACEHOLDER_ORIGIN || url.pathname.startsWith('//') || SIGN_IN_OR_OUT_PATH.test(url.pathname))
    return '/';
  return url.pathname + url.search;
}

/**
 * The page of the hub that a form was on; `/` if the header does not name one.
 * @param referer the request's `Referer`
 * @param host the request's host
 */
export function refererPath(referer: string | undefined, host: string): string {
  const url = URL.parse(referer ?? '');
  return url?.host.toLowerCase() === host.toLowerCase() ? safeRedirectPath(url.pathname + url.search) : '/';
}
