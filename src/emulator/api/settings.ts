import type { FastifyInstance } from 'fastify';
import * as v from 'valibot';
import { camelCase, readJson, renamed, snakeCase, snakeCased } from '../http/json-body.ts';
import { badRequest, serve } from '../http/routes.ts';
import type { Portal } from '../portal.ts';
import { switchesIn, switchSchemas } from '../settings/check.ts';

/**
 * The switches at run time:
 * - `GET /_emulator/settings`: 200 with all of them, see `Switches`, under snake_case names.
 * - `PATCH /_emulator/settings` with some of them: 200 with all of them, or 400, and then nothing is changed.
 */
export function serveSettings(app: FastifyInstance, portal: Portal): void {
  const view = () => snakeCased(switchesIn(portal.settings));
  serve(app, '/_emulator/settings', null, {
    GET: async (_request, reply) => reply.send(view()),
    async PATCH(request, reply) {
      const body = readJson(request, SettingsChange);
      if ('problem' in body) return badRequest(reply, body.problem);
      portal.switches.change(renamed(body.value, camelCase));
      return reply.send(view());
    },
  });
}

/** The answers' body. */
export const SettingsView = v.strictObject(renamed(switchSchemas, snakeCase));

/** What `PATCH /_emulator/settings` takes. */
export const SettingsChange = v.partial(SettingsView);
