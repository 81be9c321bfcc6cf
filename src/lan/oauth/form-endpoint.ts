import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Appliance } from '../../core/appliances/appliance.ts';
import type { Clock } from '../../core/clock.ts';
import { FORM_MEDIA_TYPE, mediaTypeOf, parseForm } from '../../system/http/form.ts';
import type { ClientRateLimiter } from '../../system/limits/client-rate-limiter.ts';
import type { ClientAuthenticator } from './client-authentication.ts';
import type { ClientAuthenticationResult } from './client-authentication-result.ts';
import { createErrorHandler, sendError, sendUnavailable } from './errors.ts';

/** A request whose sender has proved who it is. */
export interface AuthenticatedClientRequest {
  readonly appliance: Appliance;
  readonly form: ReadonlyMap<string, string>;
  /** Milliseconds since the request was here whole. */
  readonly elapsed: () => number;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

/** Who lets appliances in. */
export interface FormEndpointContext {
  readonly authenticate: ClientAuthenticator;
  /** Whoever has proved who it is, whatever becomes of its request. */
  readonly onAuthenticated: (appliance: Appliance) => void;
  /** How often one device may fail to say who it is. Who can say it is let in all the same. */
  readonly failureLimiter: ClientRateLimiter;
  readonly clock: Clock;
}

/**
 * An endpoint that takes a form from an authenticated appliance (RFC 6749, 2.3 and 3.2). What is wrong with the request, or
 * with who sends it, is answered here; an appliance that still waits to be approved gets no further either.
 */
export function serveFormEndpoint(
  app: FastifyInstance,
  path: string,
  gate: FormEndpointContext,
  answer: (request: AuthenticatedClientRequest) => FastifyReply | Promise<FastifyReply>,
): void {
  const { authenticate, onAuthenticated: heard, clock } = gate;
  app.post(path, {
    errorHandler: createErrorHandler(FORM_MEDIA_TYPE),
    async handler(request, reply) {
      const came = clock.now().uptime;
      const type = mediaTypeOf(request.headers['content-type']);
      if (type !== '' && type !== FORM_MEDIA_TYPE)
        return sendError(reply, 'invalid_request', `send the request as ${FORM_MEDIA_TYPE}`);
      const form = parseForm(typeof request.body === 'string' ? request.body : '');
      if (form === null) return sendError(reply, 'invalid_request', 'a parameter is repeated');
      const client = await authenticate(request, form);
      if (client.kind !== 'authenticated') return rejectClient(client, gate, request, reply);
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

function rejectClient(
  client: Exclude<ClientAuthenticationResult, { readonly kind: 'authenticated' }>,
  { failureLimiter: failures }: FormEndpointContext,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  switch (client.kind) {
    case 'malformed':
      return sendError(reply, 'invalid_request', client.description);
    case 'unavailable':
      return sendUnavailable(reply, client.retryAfter, client.description);
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
