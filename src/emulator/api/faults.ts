import type { FastifyInstance } from 'fastify';
import type { Faults } from '../faults/faults.ts';
import { FaultError } from '../faults/options.ts';
import { FaultBody, fromBody, toWire } from '../faults/wire.ts';
import { readJson } from '../http/json-body.ts';
import { badRequest, notFound, serve } from '../http/routes.ts';

/**
 * The faults that clients meet:
 * - `GET /_emulator/faults`: 200 `{"faults": […]}`, each with `id`, `hits` and `left`.
 * - `POST /_emulator/faults`, see `FaultBody`: 201 with the fault, or 400. The base origin goes down only for a time: this
 *   API goes with it, so nobody could ask for it back.
 * - `DELETE /_emulator/faults/{id}`, or all of them without an id: 204, or 404 for an unknown id.
 */
export function serveFaultsApi(app: FastifyInstance, faults: Faults): void {
  serve(app, '/_emulator/faults', null, {
    GET: async (_request, reply) => reply.send({ faults: faults.all().map(toWire) }),
    async POST(request, reply) {
      const body = readJson(request, FaultBody);
      if ('problem' in body) return badRequest(reply, body.problem);
      const fault = body.value;
      if (fault.kind === 'origin_down' && fault.origin === 'base') {
        if (fault.seconds === null) return badRequest(reply, ENDLESS);
        reply.header('connection', 'close');
      }
      try {
        return reply.code(201).send(toWire(faults.add(fromBody(fault), request.raw.socket)));
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
      const { id } = request.params as { readonly id: string };
      return (await faults.remove(id)) ? reply.code(204).send() : notFound(reply);
    },
  });
}

const ENDLESS = 'seconds: found none; allowed is a number above 0, because this API goes down with the base origin';
