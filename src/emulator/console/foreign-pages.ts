import type { FastifyInstance, FastifyRequest } from 'fastify';

/**
 * Keeps web pages of other origins from changing anything through the emulator's API: a browser says where a request comes
 * from (Fetch Metadata, `Origin`), and these are refused with 403. Clients that are no browsers send neither header and are
 * let through. Pages that point a name of their own at the emulator are refused before (`refuseForeignNames`).
 */
export function refuseForeignPages(app: FastifyInstance): void {
  app.addHook('onRequest', async (request, reply) => {
    if (request.method === 'GET' || request.method === 'HEAD') return;
    if (request.routeOptions.url?.startsWith('/_emulator/') !== true || !isForeign(request)) return;
    return reply.code(403).send({
      error: 'invalid_request',
      message: 'origin: found a page of another origin; allowed are the console and clients that are no browsers',
    });
  });
}

function isForeign({ headers }: FastifyRequest): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return true;
  const origin = headers.origin;
  return origin !== undefined && origin.replace(/^https?:\/\//, '') !== headers.host;
}
