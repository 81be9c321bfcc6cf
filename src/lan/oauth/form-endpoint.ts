import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Appliance } from '../../core/appliances/appliance.ts';
import type { Clock } from '../../core/clock.ts';
import { FORM, FormError, parseForm } from '../../system/http/form.ts';
import type { ClientRateLimiter } from '../../system/limits/client-rate-limiter.ts';
import type { ClientAuthentication } from './authentication-outcome.ts';
import type { Authenticate } from './client-authentication.ts';
import { sendError } from './errors.ts';

/** A request whose sender has proved who it is. */
export interface ClientRequest {
  readonly appliance: Appliance;
  readonly form: ReadonlyMap<string, string>;
  /** Milliseconds since the request was here whole. */
  readonly elapsed: () => number;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

/** Who lets appliances in. */
export interface FormEndpointContext {
  readonly authenticate: Authenticate;
  /** Whoever has proved who it is, whatever becomes of its request. */
  readonly heard: (appliance: Appliance) => void;
  /** How often one device may fail to say who it is. Who can say it is let in all the same. */
  readonly failures: ClientRateLimiter;
  readonly clock: Clock;
}

/**
 * An endpoint that takes a form from an authenticated appliance (RFC 6749, 2.3 and 3.2). What is wrong with the request, or
 * with who sends it, is answered here; an appliance that still waits to be approved gets no further either.
 */
export function serveForm(
  app: FastifyInstance,
  path: string,
  gate: FormEndpointContext,
  answer: (request: ClientRequest) => FastifyReply | Promise<FastifyReply>,
): void {
  const { authenticate, heard, clock } = gate;
  app.post(path, {
    errorHandler(error: Error & { statusCode?: number }, _request, reply) {
      if (error.statusCode === 413) return sendError(reply, 'invalid_request', 'the request is too large', {}, 413);
      if (error.statusCode === 415) return sendError(reply, 'invalid_request', `send the request as ${FORM}`);
      if ((error.statusCode ?? 500) < 500) return sendError(reply, 'invalid_request', 'the request can not be read');
      throw error;
    },
    async handler(request, reply) {
      const came = clock.now().uptime;
      const form = formOf(request);
      if (form instanceof FormError) return sendError(reply, 'invalid_request', form.message);
      const client = await authenticate(request, form);
      if (client.kind !== 'authenticated') return turnAway(client, gate, request, reply);
      const { appliance } = client;
      heard(appliance);
      if (appliance.waitingSince === null) {
        return answer({ appliance, form, elapsed: () => clock.now().uptime - came, request, reply });
      }
      const what = `${appliance.name} waits for an installer's approval`;
      return sendError(reply, 'unauthorized_client', what, { error_uri: `https://${request.host}/` });
    },
  });
}

function turnAway(
  client: Exclude<ClientAuthentication, { readonly kind: 'authenticated' }>,
  { failures }: FormEndpointContext,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  switch (client.kind) {
    case 'malformed':
      return sendError(reply, 'invalid_request', client.description);
    case 'unavailable':
      reply.header('retry-after', client.retryAfter);
      return sendError(reply, 'temporarily_unavailable', client.description);
    case 'refused': {
      const allowed = failures.take(request.socket.remoteAddress ?? '');
      if (!allowed.ok) {
        reply.header('retry-after', allowed.retryAfter);
        const description = `${client.description}; there were too many such requests`;
        return sendError(reply, 'invalid_client', description, {}, 429);
      }
      // Every 401 has a challenge that fits the endpoint (RFC 9110, 15.5.2), however the appliance tried.
      reply.header('www-authenticate', 'Basic realm="latchkey", charset="UTF-8"');
      return sendError(reply, 'invalid_client', client.description);
    }
  }
}

function formOf({ headers, body }: FastifyRequest): ReadonlyMap<string, string> | FormError {
  const type = headers['content-type'];
  if (type !== undefined && type !== FORM && type.split(';')[0]?.trim().toLowerCase() !== FORM)
    return new FormError(`send the request as ${FORM}`);
  try {
    return parseForm(typeof body === 'string' ? body : '');
  } catch (error) {
    if (error instanceof FormError) return error;
    throw error;
  }
}
