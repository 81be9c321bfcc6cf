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
