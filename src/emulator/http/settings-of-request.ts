import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Settings } from '../options.ts';
import type { Portal } from '../portal.ts';

/** The settings that each request under way began with. */
const began = new WeakMap<FastifyRequest, Settings>();

/** Lets every request of an origin keep the settings that are in force when it comes in. */
export function keepSettings(app: FastifyInstance, portal: Portal): void {
  app.addHook('onRequest', async (request) => {
    began.set(request, portal.settings);
  });
}

/** The portal with the settings that this request began with: a change in between doesn't touch it. */
export function portalOf(portal: Portal, request: FastifyRequest): Portal {
  return { ...portal, settings: began.get(request) ?? portal.settings };
}
