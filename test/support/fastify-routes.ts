import diagnostics from 'node:diagnostics_channel';
import type { FastifyInstance } from 'fastify';

/** A route as a server has registered it. */
interface FoundRoute {
  readonly method: string;
  readonly path: string;
}

/** Runs `start`. @returns its result, and for each server that it created, in order, its routes */
export async function findRoutes<Started>(
  start: () => Promise<Started>,
): Promise<{ readonly started: Started; readonly routes: readonly (readonly FoundRoute[])[] }> {
  const routes: FoundRoute[][] = [];
  const watch = (message: unknown) => {
    const { fastify: app } = message as { fastify: FastifyInstance };
    const found: FoundRoute[] = [];
    routes.push(found);
    app.addHook('onRoute', ({ method, url }) => {
      for (const one of [method].flat()) found.push({ method: one, path: url });
    });
  };
  diagnostics.subscribe('fastify.initialization', watch);
  const started = await start();
  diagnostics.unsubscribe('fastify.initialization', watch);
  return { started, routes };
}
