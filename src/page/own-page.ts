import type { FastifyRequest } from 'fastify';

/** Whether no other site's page has sent this: a browser says where a request comes from (Fetch Metadata, `Origin`). */
export function fromOwnPage({ headers, host }: FastifyRequest): boolean {
  const site = headers['sec-fetch-site'];
  if (site === 'cross-site' || site === 'same-site') return false;
  return headers.origin === undefined || headers.origin.toLowerCase() === `https://${host}`.toLowerCase();
}

/**
 * Whether another site's page loads this into itself, as a picture, a frame or a stream, where it may only lead a browser there.
 * Another port of the hub's own machine is such a site: the session's cookie does not tell ports apart.
 */
export function intoForeignPage({ headers }: FastifyRequest): boolean {
  const { 'sec-fetch-site': site, 'sec-fetch-dest': destination = 'document' } = headers;
  return (site === 'cross-site' || site === 'same-site') && destination !== 'document';
}

/** Whether another site, a mail or a chat has led the browser here. */
export function isLedHere({ headers }: FastifyRequest): boolean {
  const site = headers['sec-fetch-site'];
  return (site === 'cross-site' || site === 'same-site') && headers['sec-fetch-dest'] === 'document';
}

/** Where something is asked back before it is lost. */
const QUESTION = /^(\/appliances\/[^/?]+)\/(?:remove|rotate-secret|unpair)(?:\?.*)?$/;

/**
 * Where a browser goes on that another site has led to a question: to what it is about, since the second click of two, meant for
 * that site's page, would say yes. Null where it is none, or the hub's own page has led there.
 */
export function besideQuestion({ headers, url }: FastifyRequest): string | null {
  const site = headers['sec-fetch-site'];
  return site === 'cross-site' || site === 'same-site' ? (QUESTION.exec(url)?.[1] ?? null) : null;
}
