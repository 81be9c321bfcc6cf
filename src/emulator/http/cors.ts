import type { FastifyInstance } from 'fastify';
import { isLoopbackHost } from '../../system/addresses.ts';
import type { Endpoint } from './logged-request.ts';
import { requestContext } from './request-context.ts';

/** The endpoints of the OAuth 2.0 server and the API that programs call, also scripts of a web page. */
export const SCRIPTED_ENDPOINTS: readonly (Endpoint | null)[] = [
  ...(['par', 'token', 'revoke', 'introspect', 'register', 'userinfo', 'whoami'] as const),
  ...(['discovery', 'device_authorization'] as const),
];

/** Lets scripts of web pages call the endpoints for programs, by the setting `cors` (CORS protocol of the Fetch standard). */
export function allowWebPages(app: FastifyInstance): void {
  app.addHook('onRequest', async (request, reply) => {
    const { endpoint, portal, method } = requestContext(request);
    const { origin } = request.headers;
    const { cors } = portal.settings;
    if (origin === undefined || cors === 'none' || !SCRIPTED_ENDPOINTS.includes(endpoint)) return;
    reply.header('vary', 'Origin');
    if (cors === 'loopback' && !isLoopbackOrigin(origin)) return;
    reply.header('access-control-allow-origin', origin);
    reply.header('access-control-expose-headers', 'www-authenticate, retry-after, dpop-nonce');
    if (method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined) return;
    const headers = request.headers['access-control-request-headers'];
    if (headers !== undefined) reply.header('access-control-allow-headers', headers);
    return reply.header('access-control-allow-methods', 'GET, POST, PUT, DELETE').code(204).send();
  });
}

function isLoopbackOrigin(origin: string): boolean {
  return URL.canParse(origin) && isLoopbackHost(new URL(origin).hostname);
}
