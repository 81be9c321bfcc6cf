import type { FastifyRequest } from 'fastify';

/** Whether no other site's page has sent this: a browser says where a request comes from (Fetch Metadata, `Origin`). */
export function fromOwnPage({ headers, host }: FastifyRequest): boolean {
  const site = headers['sec-fetch-site'];
  if (site === 'cross-site' || site === 'same-site') return false;
  return headers.origin === undefined || headers.origin.toLowerCase() === `https://${host}`.toLowerCase();
}
