import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Appliance } from '../../core/appliances/appliance.ts';
import type { Clock } from '../../core/clock.ts';
import { type LanService, MAX_RESPONSE_TIME } from '../../core/lan-service.ts';
import { unmapIpv4 } from '../../system/addresses.ts';
import { FORM_MEDIA_TYPE, mediaTypeOf, parseForm } from '../../system/http/form.ts';
import type { ClientRateLimiter } from '../../system/limits/client-rate-limiter.ts';
import type { ClientAuthenticator } from './client-authentication.ts';
import type { ClientAuthenticationResult } from './client-authentication-result.ts';
import { createErrorHandler, sendError, sendUnavailable } from './errors.ts';
import { requestedConnections } from './requested-connection.ts';

/** Parameters that may be repeated (RFC 8707, 2; RFC 8693, 2.1). `audience` has no meaning here, as other unknown ones. */
const REPEATABLE = ['resource', 'audience'];

/** A request of an authenticated appliance. */
export interface AuthenticatedClientRequest {
  readonly appliance: Appliance;
  readonly form: ReadonlyMap<string, string>;
  /** The name of the connection that the request is about; undefined if it does not say. */
  readonly connection: string | undefined;
  /** The address of the hub's page, without a trailing slash. */
  readonly page: string;
  /** When the response is due: {@link MAX_RESPONSE_TIME} after the complete request arrived, on the boot clock in ms. */
  readonly deadline: number;
  readonly reply: FastifyReply;
}

/** What the form endpoints need. */
export interface FormEndpointContext {
  readonly authenticate: ClientAuthenticator;
  readonly service: LanService;
  /** Limits failed authentications per address. Successful ones are never limited. */
  readonly failureLimiter: ClientRateLimiter;
  /** The address of the hub's page for whoever sends the request, without a trailing slash. */
  page(request: FastifyRequest): string;
  readonly clock: Clock;
}

/**
 * Registers an endpoint that takes a form from an authenticated appliance (RFC 6749, 2.3 and 3.2). Malformed requests,
 * failed authentication and appliances that wait for approval are rejected here, so `handle` never sees them.
 */
export function serveFormEndpoint(
  app: FastifyInstance,
  path: string,
  context: FormEndpointContext,
  handle: (request: AuthenticatedClientRequest) => FastifyReply | Promise<FastifyReply>,
): void {
  const { authenticate, service, clock } = context;
  app.post<{ Params: { connection?: string } }>(path, {
    errorHandler: createErrorHandler(FORM_MEDIA_TYPE),
    async handler(request, reply) {
      const deadline = clock.now().uptime + MAX_RESPONSE_TIME;
      const type = mediaTypeOf(request.headers['content-type']);
      if (type !== '' && type !== FORM_MEDIA_TYPE)
        return sendError(reply, 'invalid_request', `send the request as ${FORM_MEDIA_TYPE}`);
      const body = typeof request.body === 'string' ? request.body : '';
      const form = parseForm(body, REPEATABLE);
      if (form === null) return sendError(reply, 'invalid_request', 'a parameter is repeated');
      const client = await authenticate(request, form, deadline);
      if (client.kind !== 'authenticated') return rejectClient(client, context, request, reply);
      const { appliance } = client;
      service.recordAuthentication(appliance);
      if (appliance.waiting === null) {
        const [connection, ...more] = requestedConnections(request.params.connection, body);
        if (more.length > 0)
          return sendError(reply, 'invalid_target', 'a token is for one connection: name one of them in resource');
        return handle({ appliance, form, connection, page: context.page(request), deadline, reply });
      }
      const what = `${appliance.name} is not approved yet: an installer must approve it`;
      return sendError(reply, 'unauthorized_client', what, { error_uri: `${context.page(request)}/` });
    },
  });
}

function rejectClient(
  client: Exclude<ClientAuthenticationResult, { readonly kind: 'authenticated' }>,
  { failureLimiter, service }: FormEndpointContext,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  switch (client.kind) {
    case 'malformed':
      return sendError(reply, 'invalid_request', client.description);
    case 'unavailable':
      return sendUnavailable(reply, client.retryAfter, client.description);
    case 'refused': {
      const { remoteAddress = '' } = request.socket;
      if (client.appliance !== undefined)
        service.recordRefusal(client.appliance, client.reason ?? client.description, unmapIpv4(remoteAddress));
      const allowed = failureLimiter.take(remoteAddress);
      if (!allowed.ok) {
        reply.header('retry-after', allowed.retryAfter);
        const description = `${client.description}; too many failed attempts: wait, and try again`;
        return sendError(reply, 'invalid_client', description, {}, 429);
      }
      // Every 401 needs a challenge (RFC 9110, 15.5.2), whichever method the appliance used.
      reply.header('www-authenticate', 'Basic realm="latchkey", charset="UTF-8"');
      return sendError(reply, 'invalid_client', client.description);
    }
  }
}
