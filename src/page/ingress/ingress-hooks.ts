import type { FastifyInstance } from 'fastify';
import { FORM_MEDIA_TYPE } from '../../system/http/form.ts';
import { redirectBelow } from './base-path.ts';
import { readIngressRequest } from './ingress-request.ts';

/** The response to a request without a usable base path. */
const NO_BASE_PATH = 'The reverse proxy must send X-Ingress-Path: the path below which it shows this page, or "/".\n';

/** Makes all routes of an app those of a reverse proxy's base path. Call it before routes are registered. */
export function acceptIngressRequests(app: FastifyInstance): void {
  app.addContentTypeParser(FORM_MEDIA_TYPE, { parseAs: 'string' }, (_request, body, done) => done(null, body));
  app.addHook('onRequest', async (request, reply) => {
    const ingress = readIngressRequest(request.headers);
    if (ingress !== null) request.ingress = ingress;
    else await reply.code(400).type('text/plain; charset=utf-8').send(NO_BASE_PATH);
  });
  app.addHook('onSend', async ({ ingress }, reply) => {
    // A cookie would be one of the proxy's site, and go to everything there.
    reply.removeHeader('set-cookie');
    const location = reply.getHeader('location');
    if (typeof location === 'string') reply.header('location', redirectBelow(location, ingress?.basePath ?? ''));
  });
}
