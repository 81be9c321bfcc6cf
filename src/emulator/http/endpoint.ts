import type { FastifyRequest } from 'fastify';

/** Which of the portal's endpoints a request is for; `unknown`: none of them. */
export type Endpoint = 'config' | 'code/get' | 'code/set' | 'authorize' | 'token' | 'whoami' | 'unknown';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The portal's endpoint that a route is; the emulator's own paths have none. */
    endpoint?: Endpoint;
  }
}

/** The endpoint that a request is for, or null for the emulator's own paths. */
export function endpointOf(request: FastifyRequest): Endpoint | null {
  return request.is404 ? 'unknown' : (request.routeOptions.config.endpoint ?? null);
}
