import type { FastifyReply, FastifyRequest } from 'fastify';
import * as v from 'valibot';
import type { JsonObject, OperationDescription, ResponseDescription } from '../../system/http/openapi.ts';
import type { Faults } from '../faults/faults.ts';
import { bodyText, mediaType } from '../http/request-context.ts';
import type { RequestLog } from '../http/request-log.ts';
import { badRequest } from '../http/routes.ts';
import { type ParseResult, parseJson } from '../json.ts';
import type { EmulatedPortal } from '../portal.ts';

/**
 * One method of one path, as `GET /_emulator/openapi.json` describes it. Its responses do not include those that every
 * path can have (404 for unknown paths, 405, 413, those of faults).
 */
export interface EmulatorOperation extends OperationDescription {
  /** The origin that serves it; default: the base origin. */
  readonly origin?: 'frontend' | 'both';
  /** The authentication; default: none. */
  readonly security?: 'client' | 'bearer';
}

/** What the emulator's API reads and changes. */
export interface ApiContext {
  readonly portal: EmulatedPortal;
  readonly faults: Faults;
  readonly log: RequestLog;
  /** Resets the emulator to its initial state. */
  reset(): Promise<void>;
  /** The OpenAPI description of all operations. */
  describe(): Promise<JsonObject>;
}

/** An operation under `/_emulator/`: one declaration describes and serves it. */
export interface ApiOperation extends EmulatorOperation {
  /**
   * Returns the body of the response; null means 404. The status is 200 unless it sets another one. A LoginError,
   * ClockError or FaultError becomes a 400.
   */
  handle(api: ApiContext, request: FastifyRequest, reply: FastifyReply): unknown;
}

/** An operation with a JSON body; a body that does not match the schema gets 400. */
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

/**
 * Parses and checks a request's body. It must be application/json, which web pages of other origins can't send without
 * a CORS preflight.
 */
function readJson<T>(request: FastifyRequest, schema: v.GenericSchema<unknown, T>): ParseResult<T> {
  if (mediaType(request) !== 'application/json') return { problem: 'body: must be application/json' };
  return parseJson(bodyText(request), schema);
}

const BadRequestBody = v.strictObject({
  error: v.literal('invalid_request'),
  message: v.pipe(v.string(), v.description('Names the member, the value found and the values allowed')),
});

/** The response of the emulator's API to an invalid request. */
export const badRequestResponse: ResponseDescription = { description: 'A member is invalid', body: BadRequestBody };

/** RFC 7517, 5. */
export const JwkSet = v.strictObject({ keys: v.array(v.record(v.string(), v.string())) });

/** The body of every 404. */
export const NotFoundBody = v.strictObject({ error: v.literal('not_found') });
