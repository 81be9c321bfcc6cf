import type { FastifyInstance } from 'fastify';
import * as v from 'valibot';
import { readJson } from '../http/json-body.ts';
import { serve } from '../http/server.ts';
import type { Portal } from '../portal.ts';
import { ClockError } from '../virtual-clock.ts';

/**
 * The emulator's time:
 * - `GET /_emulator/clock`: 200 `{"now", "offset"}`, see `ClockView`.
 * - `POST /_emulator/clock` `{"advance": seconds}`: 200 with the same, or 400.
 */
export function serveClockApi(app: FastifyInstance, { clock }: Portal): void {
  serve(app, '/_emulator/clock', null, {
    GET: async (_request, reply) => reply.send(clock.view()),
    async POST(request, reply) {
      const body = readJson(request, ClockBody);
      if ('problem' in body) return reply.code(400).send({ error: 'invalid_request', message: body.problem });
      try {
        clock.advance(body.value.advance);
      } catch (error) {
        if (!(error instanceof ClockError)) throw error;
        return reply.code(400).send({ error: 'invalid_request', message: error.message });
      }
      return reply.send(clock.view());
    },
  });
}

/** The body of `POST /_emulator/clock`. */
export const ClockBody = v.strictObject({ advance: v.number('is a number of seconds, 0 or more') });
