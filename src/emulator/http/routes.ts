import type { FastifyInstance, FastifyReply, RouteHandlerMethod } from 'fastify';
import type { Endpoint } from './logged-request.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The portal's endpoint that a route is; the emulator's own paths have none. */
    endpoint?: Endpoint;
  }
}

/** Not imported: that evaluates all of node:http's exports, and with them loads a whole HTTP client. */
export const { STATUS_CODES } = process.getBuiltinModule('node:http');

/** Serves a path; other methods than those given are answered 405 with `Allow` (RFC 9110, 15.5.6). */
export function addRoute(
  app: FastifyInstance,
  path: string,
  endpoint: Endpoint | null,
  handlers: { readonly [Method in 'GET' | 'POST' | 'PATCH' | 'DELETE']?: RouteHandlerMethod },
): void {
  const config = endpoint === null ? {} : { endpoint };
  for (const [method, handler] of Object.entries(handlers)) app.route({ method, url: path, config, handler });
  const allowed = Object.keys(handlers).flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
  app.route({
    method: app.supportedMethods.filter((method) => !allowed.includes(method)),
    url: path,
    config,
    handler: (_request, reply) =>
      reply.code(405).header('allow', allowed.join(', ')).send({ error: 'invalid_request' }),
  });
}

/** The one 404 of the portal: it tells nobody why. */
export function sendNotFound(reply: FastifyReply): FastifyReply {
  return reply.code(404).send({ error: 'not_found' });
}

/**
 * Makes an answer of the emulator's own API a 400.
 * @param message names the member, what was found and what is allowed @returns its body
 */
export function badRequest(reply: FastifyReply, message: string): object {
  reply.code(400);
  return { error: 'invalid_request', message };
}
