import type { FastifyContextConfig } from 'fastify';

/** Which of the portal's endpoints a request is for; `unknown`: none of them. */
export type Endpoint = 'config' | 'code/get' | 'code/set' | 'authorize' | 'token' | 'whoami' | 'unknown';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The portal's endpoint that a route is; the emulator's own paths have none. */
    endpoint?: Endpoint;
  }
}

/** The endpoint that a route is, or null for the emulator's own paths. @param url the route's, undefined where there is none */
export function endpointOf(url: string | undefined, config: FastifyContextConfig): Endpoint | null {
  return url === undefined ? 'unknown' : (config.endpoint ?? null);
}
