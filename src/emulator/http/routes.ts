import type { FastifyInstance, FastifyReply, RouteHandlerMethod } from 'fastify';
import type { Endpoint } from './logged-request.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The portal's endpoint that a route is; the emulator's own paths have none. */
    endpoint?: Endpoint;
  }
}

/** Serves a path; other methods than those given are answered 405 with `Allow` (RFC 9110, 15.5.6). */
export function serve(
  app: FastifyInstance,
  path: string,
  endpoint: Endpoint | null,
  handlers: {
    readonly GET?: RouteHandlerMethod;
    readonly POST?: RouteHandlerMethod;
    readonly PATCH?: RouteHandlerMethod;
    readonly DELETE?: RouteHandlerMethod;
  },
): void {
  const config = endpoint === null ? {} : { endpoint };
  const { GET, POST, PATCH, DELETE } = handlers;
  if (GET !== undefined) app.get(path, { config }, GET);
  if (POST !== undefined) app.post(path, { config }, POST);
  if (PATCH !== undefined) app.patch(path, { config }, PATCH);
  if (DELETE !== undefined) app.delete(path, { config }, DELETE);
  const allowed = [
    ...(GET === undefined ? [] : ['GET', 'HEAD']),
    ...(POST === undefined ? [] : ['POST']),
    ...(PATCH === undefined ? [] : ['PATCH']),
    ...(DELETE === undefined ? [] : ['DELETE']),
  ];
  app.route({
    method: app.supportedMethods.filter((method) => !allowed.includes(method)),
    url: path,
    config,
    handler: (_request, reply) =>
      reply.code(405).header('allow', allowed.join(', ')).send({ error: 'invalid_request' }),
  });
}

/** The one 404 of the portal: it tells nobody why. */
export function notFound(reply: FastifyReply): FastifyReply {
  return reply.code(404).send({ error: 'not_found' });
}

/** The 400 of the emulator's own API. @param message names the member, what was found and what is allowed */
export function badRequest(reply: FastifyReply, message: string): FastifyReply {
  return reply.code(400).send({ error: 'invalid_request', message });
}
