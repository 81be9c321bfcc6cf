import type { FastifyInstance } from 'fastify';
import * as v from 'valibot';
import { readJson } from '../http/json-body.ts';
import { serve } from '../http/server.ts';
import type { Portal } from '../portal.ts';
import { SWITCHES, switchesIn, switchesSchema } from '../switches.ts';

/**
 * The switches at run time:
 * - `GET /_emulator/settings`: 200 with all of them, see `Switches`, under snake_case names.
 * - `PATCH /_emulator/settings` with some of them: 200 with all of them, or 400, and then nothing is changed.
 */
export function serveSettings(app: FastifyInstance, portal: Portal): void {
  serve(app, '/_emulator/settings', null, {
    GET: async (_request, reply) => reply.send(view(portal)),
    async PATCH(request, reply) {
      const body = readJson(request, SettingsChange);
      if ('problem' in body) return reply.code(400).send({ error: 'invalid_request', message: body.problem });
      const named = Object.entries(body.value).map(([name, value]) => [BY_MEMBER.get(name), value]);
      portal.switchboard.change(Object.fromEntries(named));
      return reply.send(view(portal));
    },
  });
}

/** A switch's name in JSON: `refreshGrace` is `refresh_grace`. */
function member(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

const BY_MEMBER: ReadonlyMap<string, string> = new Map(SWITCHES.map((name) => [member(name), name]));

/** The answers' body. */
export const SettingsView = v.strictObject(
  Object.fromEntries(Object.entries(switchesSchema.entries).map(([name, schema]) => [member(name), schema])),
);

/** What `PATCH /_emulator/settings` takes. */
export const SettingsChange = v.partial(SettingsView);

function view(portal: Portal): Record<string, unknown> {
  return Object.fromEntries(Object.entries(switchesIn(portal.settings)).map(([name, value]) => [member(name), value]));
}
