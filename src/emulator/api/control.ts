import type { FastifyInstance } from 'fastify';
import * as v from 'valibot';
import { FaultError, faultAnswer, readFault } from '../faults/body.ts';
import type { Faults } from '../faults/faults.ts';
import { camelCase, readJson, renamed, snakeCase, snakeCased } from '../http/json-body.ts';
import { pathParameter } from '../http/request-form.ts';
import { badRequest, notFound, serve } from '../http/routes.ts';
import { LoginError, login } from '../oauth/login.ts';
import type { Portal } from '../portal.ts';
import { settingSchemas, settingsIn } from '../settings/check.ts';
import { ClockError } from '../virtual-clock.ts';

/**
 * `POST /_emulator/login` `{"state", "user", "deny"?}`: 200 `{"location"}`, or 400 with a message that names the member.
 */
export function serveLogin(app: FastifyInstance, portal: Portal): void {
  serve(app, '/_emulator/login', null, {
    async POST(request, reply) {
      const body = readJson(request, LoginBody);
      if ('problem' in body) return badRequest(reply, body.problem);
      try {
        return reply.send(await login(portal, body.value));
      } catch (error) {
        if (!(error instanceof LoginError)) throw error;
        return badRequest(reply, error.message);
      }
    },
  });
}

/** What `POST /_emulator/login` takes. */
export const LoginBody = v.strictObject({
  state: v.string(),
  user: v.optional(v.string()),
  deny: v.optional(v.boolean()),
});

/**
 * The emulator's time:
 * - `GET /_emulator/clock`: 200 `{"now", "offset"}`, see `ClockView`.
 * - `POST /_emulator/clock` `{"advance": seconds}`: 200 with the same, or 400.
 */
export function serveClock(app: FastifyInstance, { clock }: Portal): void {
  serve(app, '/_emulator/clock', null, {
    GET: async (_request, reply) => reply.send(clock.view()),
    async POST(request, reply) {
      const body = readJson(request, ClockBody);
      if ('problem' in body) return badRequest(reply, body.problem);
      try {
        clock.advance(body.value.advance);
      } catch (error) {
        if (!(error instanceof ClockError)) throw error;
        return badRequest(reply, error.message);
      }
      return reply.send(clock.view());
    },
  });
}

/** The body of `POST /_emulator/clock`. */
export const ClockBody = v.strictObject({ advance: v.number('is a number of seconds, 0 or more') });

/**
 * The settings at run time:
 * - `GET /_emulator/settings`: 200 with all of them, see `Settings`, under snake_case names.
 * - `PATCH /_emulator/settings` with some of them: 200 with all of them, or 400, and then nothing is changed.
 */
export function serveSettings(app: FastifyInstance, portal: Portal): void {
  const view = () => snakeCased(settingsIn(portal.settings));
  serve(app, '/_emulator/settings', null, {
    GET: async (_request, reply) => reply.send(view()),
    async PATCH(request, reply) {
      const body = readJson(request, SettingsChange);
      if ('problem' in body) return badRequest(reply, body.problem);
      portal.settingsInForce.change(renamed(body.value, camelCase));
      return reply.send(view());
    },
  });
}

/** The answers' body. */
export const SettingsView = v.strictObject(renamed(settingSchemas, snakeCase));

/** What `PATCH /_emulator/settings` takes. */
export const SettingsChange = v.partial(SettingsView);

/**
 * The faults that clients meet:
 * - `GET /_emulator/faults`: 200 `{"faults": […]}`, each with `id`, `hits` and `left`.
 * - `POST /_emulator/faults`, see `FaultBody`: 201 with the fault, or 400. The base origin goes down only for a time: this
 *   API goes with it, so nobody could ask for it back.
 * - `DELETE /_emulator/faults/{id}`, or all of them without an id: 204, or 404 for an unknown id.
 */
export function serveFaults(app: FastifyInstance, faults: Faults): void {
  serve(app, '/_emulator/faults', null, {
    GET: async (_request, reply) => reply.send({ faults: faults.all().map(faultAnswer) }),
    async POST(request, reply) {
      const body = readFault(request);
      if ('problem' in body) return badRequest(reply, body.problem);
      const fault = body.value;
      if (fault.kind === 'origin_down' && fault.origin === 'base') {
        if (fault.seconds === null) return badRequest(reply, ENDLESS);
        reply.header('connection', 'close');
      }
      try {
        return reply.code(201).send(faultAnswer(faults.add(fault, request.raw.socket)));
      } catch (error) {
        if (!(error instanceof FaultError)) throw error;
        return badRequest(reply, error.message);
      }
    },
    async DELETE(_request, reply) {
      await faults.clear();
      return reply.code(204).send();
    },
  });
  serve(app, '/_emulator/faults/:id', null, {
    async DELETE(request, reply) {
      const isRemoved = await faults.remove(pathParameter(request, 'id') ?? '');
      return isRemoved ? reply.code(204).send() : notFound(reply);
    },
  });
}

const ENDLESS = 'seconds: found none; allowed is a number above 0, because this API goes down with the base origin';
