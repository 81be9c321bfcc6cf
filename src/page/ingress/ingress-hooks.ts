import type { FastifyInstance } from 'fastify';
import { FORM_MEDIA_TYPE } from '../../system/http/form.ts';
import { redirectBelow } from './base-path.ts';
import { type IngressRequest, isPermittedUser, readIngressRequest } from './ingress-request.ts';

/** The response to a request without a usable base path. */
const NO_BASE_PATH = 'The reverse proxy must send X-Ingress-Path: the path below which it shows this page, or "/".\n';

/** The response to a user who may not open the page, with what an administrator needs to change that. */
function notPermitted({ loginName, userId }: IngressRequest): string {
  const user = [...new Set([loginName, userId])].filter(Boolean).join(', id ') || 'nobody';
  return `Only the users in the hub's configuration (ingress.users) may open this page. You are signed in as ${user}.\n`;
}

/**
 * Makes all routes of an app those of a reverse proxy's base path. Call it before routes are registered.
 * @param users as in {@link isPermittedUser}
 */
export function acceptIngressRequests(app: FastifyInstance, users: readonly string[]): void {
  app.addContentTypeParser(FORM_MEDIA_TYPE, { parseAs: 'string' }, (_request, body, done) => done(null, body));
  app.addHook('onRequest', async (request, reply) => {
    const ingress = readIngressRequest(request.headers);
    const refuse = (status: number, text: string) => reply.code(status).type('text/plain; charset=utf-8').send(text);
    if (ingress === null) await refuse(400, NO_BASE_PATH);
    else if (!isPermittedUser(ingress, users)) await refuse(403, notPermitted(ingress));
    else request.ingress = ingress;
  });
  app.addHook('onSend', async ({ ingress }, reply) => {
    // A cookie would be one of the proxy's site, and go to everything there.
    reply.removeHeader('set-cookie');
    const location = reply.getHeader('location');
    if (typeof location === 'string') reply.header('location', redirectBelow(location, ingress?.basePath ?? ''));
  });
}
