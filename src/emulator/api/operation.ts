import type { FastifyReply, FastifyRequest } from 'fastify';
import * as v from 'valibot';
import type { systemTimers } from '../../system/clock.ts';
import type { JsonObject, OperationDescription, ResponseDescription } from '../../system/http/openapi.ts';
import type { Faults } from '../faults/faults.ts';
import { readJson } from '../http/json-body.ts';
import type { RequestLog } from '../http/request-log.ts';
import { badRequest } from '../http/routes.ts';
import type { EmulatedPortal } from '../portal.ts';

/**
 * One method of one path, as `GET /_emulator/openapi.json` tells it. What every path may answer (404 for none, 405, 413,
 * whatever a fault says) is left out of its answers.
 */
export interface EmulatorOperation extends OperationDescription {
  /** Which of the two origins serves it; default: the base origin. */
  readonly origin?: 'frontend';
  /** The ways to authenticate; default: none. */
  readonly security?: 'client' | 'bearer';
}

/** What the emulator's own API shows and changes. */
export interface ApiContext {
  readonly portal: EmulatedPortal;
  readonly faults: Faults;
  readonly log: RequestLog;
  readonly timers: EventTimers;
  /** All as at the start. */
  reset(): Promise<void>;
  /** The OpenAPI description of everything. */
  describe(): Promise<JsonObject>;
}

/** Runs something later; the emulator needs no more of the timers. */
export type EventTimers = Pick<typeof systemTimers, 'after'>;

/** An operation of the emulator's own, under `/_emulator/`: described and served by the same declaration. */
export interface ApiOperation extends EmulatorOperation {
  /**
   * Gives the answer's body, whose status is 200 unless it sets another one; null is a 404. A LoginError, ClockError or
   * FaultError is a 400.
   */
  handle(api: ApiContext, request: FastifyRequest, reply: FastifyReply): unknown;
}

/** An operation that takes JSON; what does not fit the schema is answered 400. */
export function jsonOperation<Body>(
  operation: Omit<ApiOperation, 'json' | 'handle'> & {
    readonly json: v.GenericSchema<unknown, Body>;
    handle(api: ApiContext, body: Body, request: FastifyRequest, reply: FastifyReply): unknown;
  },
): ApiOperation {
  return {
    ...operation,
    handle(api, request, reply) {
      const body = readJson(request, operation.json);
      return 'problem' in body ? badRequest(reply, body.problem) : operation.handle(api, body.value, request, reply);
    },
  };
}

const BadRequestBody = v.strictObject({
  error: v.literal('invalid_request'),
  message: v.pipe(v.string(), v.description('Names the member, what was found and what is allowed')),
});

/** What the emulator's own API answers to a request that is no good. */
export const badRequestResponse: ResponseDescription = { description: 'A member is no good', body: BadRequestBody };

/** The body of every 404. */
export const NotFoundBody = v.strictObject({ error: v.literal('not_found') });
