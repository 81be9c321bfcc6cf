import type { FastifyInstance, FastifyReply } from 'fastify';
import * as v from 'valibot';
import { Failure, type FailureCode, messageOf } from '../core/failure.ts';
import type { Log } from '../core/log.ts';

/** Every response that is not 2xx. */
const failureResponse = v.object({ code: v.string(), message: v.string() });

/** The HTTP status of each failure code on the control socket. */
const httpStatus: Readonly<Record<FailureCode, number>> = {
  address_rejected: 400,
  appliance_declared: 409,
  appliance_exists: 409,
  appliance_has_keys: 409,
  appliance_unknown: 404,
  certificate_unusable: 500,
  client_rejected: 409,
  config_invalid: 500,
  connection_declared: 409,
  connection_exists: 409,
  connection_in_use: 409,
  connection_mismatch: 409,
  connection_unknown: 404,
  copy_unusable: 400,
  control_socket_taken: 500,
  hub_id_taken: 500,
  hub_name_claimed: 500,
  hub_not_running: 503,
  hub_stopping: 503,
  import_failed: 502,
  name_invalid: 400,
  not_allowed: 403,
  pairing_unknown: 404,
  passphrase_weak: 400,
  portal_declared: 409,
  portal_exists: 409,
  portal_in_use: 409,
  portal_unknown: 400,
  portal_unreachable: 502,
  port_unavailable: 500,
  request_invalid: 400,
  scope_invalid: 400,
  database_unavailable: 503,
  database_unusable: 500,
  state_dir_unusable: 500,
  store_key_wrong: 500,
  store_locked: 500,
  store_schema_unknown: 500,
  store_unreadable: 500,
  store_unwritable: 507,
  token_unavailable: 409,
  unexpected: 500,
};

/**
 * Makes every response that is not 2xx a {@link failureResponse}, whether a route, Fastify or its router made it.
 */
export function setErrorHandlers(app: FastifyInstance, log: Log): void {
  app.setErrorHandler((error: unknown, request, reply) => {
    const status = frameworkStatus(error);
    if (error instanceof Failure) return sendFailure(reply, error);
    if (status !== null) return sendFailure(reply, new Failure('request_invalid', messageOf(error)), status);
    log.error('control_request_failed', { route: request.routeOptions.url, error: messageOf(error) });
    return sendFailure(
      reply,
      new Failure('unexpected', 'internal error: see the hub\'s log (with systemd: "sudo journalctl -u latchkey")'),
    );
  });
  app.setNotFoundHandler({}, (request, reply) => {
    const what = `${request.method} ${request.url.slice(0, 200)}`;
    const message = `the running hub does not support ${what}: check that the hub and this command have the same version`;
    return sendFailure(reply, new Failure('request_invalid', message), 404);
  });
}

/** Sends a failure as the response. */
export function sendFailure(reply: FastifyReply, failure: Failure, status = httpStatus[failure.code]): FastifyReply {
  const body: v.InferInput<typeof failureResponse> = { code: failure.code, message: messageOf(failure) };
  return reply.code(status).send(body);
}

/** The failure that a response with a status other than 2xx describes. @param body parsed JSON */
export function failureFromResponse(status: number, body: unknown): Failure {
  const response = v.is(failureResponse, body) ? body : null;
  if (response !== null && isFailureCode(response.code)) return new Failure(response.code, response.message);
  const next = 'see its log (with systemd: "sudo journalctl -u latchkey")';
  return new Failure(
    'unexpected',
    response?.message ?? `the hub responded with the status ${status} and no reason: ${next}`,
  );
}

function isFailureCode(code: string): code is FailureCode {
  return Object.hasOwn(httpStatus, code);
}

/**
 * The 4xx status of an error that Fastify itself raised: bad JSON, an unknown content type, a body that is too large.
 */
function frameworkStatus(error: unknown): number | null {
  if (!(error instanceof Error) || !('statusCode' in error)) return null;
  const { statusCode } = error;
  return typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500 ? statusCode : null;
}
