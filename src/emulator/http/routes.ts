import type { FastifyInstance, FastifyReply, RouteHandlerMethod } from 'fastify';
import type { Endpoint } from './logged-request.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The portal endpoint of a route; paths under `/_emulator/` have none. */
    endpoint?: Endpoint;
    /** Whether it is an endpoint of the generic OAuth 2.0 server, and not one of docs/portal.md. */
    oauth2?: boolean;
  }
}

/** Not imported, because an import evaluates all exports of node:http and so loads a whole HTTP client. */
export const { STATUS_CODES } = process.getBuiltinModule('node:http');

/** The methods of a path. */
type RouteHandlers = { readonly [Method in 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE']?: RouteHandlerMethod };

/** Adds the routes of a path of the generic OAuth 2.0 server, see {@link addRoute}. */
export function addOAuth2Route(app: FastifyInstance, path: string, endpoint: Endpoint, handlers: RouteHandlers): void {
  addRoute(app, path, endpoint, handlers, true);
}

/** Adds the routes of a path. Methods without a handler get 405 with `Allow` (RFC 9110, 15.5.6). */
export function addRoute(
  app: FastifyInstance,
  path: string,
  endpoint: Endpoint | null,
  handlers: RouteHandlers,
  oauth2 = false,
): void {
  const config = endpoint === null ? {} : { endpoint, oauth2 };
  for (const [method, handler] of Object.entries(handlers)) app.route({ method, url: path, config, handler });
  const allowed = Object.keys(handlers).flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
  app.route({
    method: app.supportedMethods.filter((method) => !allowed.includes(method)),
    url: path,
    config,
    handler: (_request, reply) =>
      reply
        .code(405)
        .header('allow', allowed.join(', '))
        .send({ error: 'invalid_request', ...(oauth2 && { error_description: `use ${allowed.join(', ')} here` }) }),
  });
}

/** A 404. Those of the portal do not reveal the reason. @param description only for paths that no endpoint has */
export function sendNotFound(reply: FastifyReply, description?: string): FastifyReply {
  return reply.code(404).send({ error: 'not_found', error_description: description });
}

/**
 * Sets the status of a response of the emulator's API to 400.
 * @param message names the member, the value found and the values allowed
 * @returns the body
 */
export function badRequest(reply: FastifyReply, message: string): object {
  reply.code(400);
  return { error: 'invalid_request', message };
}
