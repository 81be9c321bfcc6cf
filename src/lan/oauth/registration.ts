import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Failure } from '../../core/failure.ts';
import type { LanService } from '../../core/lan-service.ts';
import { comparisonCode } from '../../system/comparison-code.ts';
import { mediaTypeOf } from '../../system/http/form.ts';
import { ClientRateLimiter, type RateLimiterContext } from '../../system/limits/client-rate-limiter.ts';
import { rateLimitKey } from '../../system/limits/rate-limit-key.ts';
import { parseClientMetadata } from './client-metadata.ts';
import { createErrorHandler, sendError, sendStoreUnwritable, sendUnavailable, setNoStore } from './errors.ts';
import { GRANT_TYPES } from './server-metadata.ts';

/** RFC 7591, 3.1. */
const JSON_TYPE = 'application/json';
/** RFC 6750, 2.1. */
const BEARER_PATTERN = /^bearer +([\w.~+/-]+=*)$/i;
const CHALLENGE = 'Bearer realm="latchkey"';
/** How often one address may try to register without a valid initial access token. */
const UNINVITED_REGISTRATION_LIMIT = { burst: 10, interval: 60_000 };

const REGISTRATION_CLOSED =
  'registration is closed: ask the installer for an initial access token (latchkey invite) and send it as Authorization: Bearer, or ask the installer to open registration (latchkey registration open --for 10m)';
const INITIAL_ACCESS_TOKEN_INVALID =
  'the initial access token is wrong, was used or has expired: ask the installer for another (latchkey invite)';

/** The client registration endpoint (RFC 7591, 3). */
export function serveRegistrationEndpoint(
  app: FastifyInstance,
  service: LanService,
  environment: RateLimiterContext,
): void {
  const limit = new ClientRateLimiter('too_many_registrations', UNINVITED_REGISTRATION_LIMIT, environment);
  app.post('/oauth/register', {
    errorHandler: createErrorHandler(JSON_TYPE),
    async handler(request, reply) {
      if (mediaTypeOf(request.headers['content-type']) !== JSON_TYPE)
        return sendError(reply, 'invalid_request', `send the request as ${JSON_TYPE}`);
      let body: unknown;
      try {
        body = JSON.parse(typeof request.body === 'string' ? request.body : '');
      } catch {
        return sendError(reply, 'invalid_request', 'the body is not valid JSON');
      }
      const metadata = parseClientMetadata(body);
      if (metadata.kind === 'invalid') return sendError(reply, 'invalid_client_metadata', metadata.description);
      return register({ service, limit }, request, reply, metadata);
    },
  });
}

async function register(
  { service, limit }: { readonly service: LanService; readonly limit: ClientRateLimiter },
  { headers: { authorization }, socket }: FastifyRequest,
  reply: FastifyReply,
  { metadata, method }: Extract<ReturnType<typeof parseClientMetadata>, { kind: 'read' }>,
): Promise<FastifyReply> {
  const token = authorization === undefined ? null : (BEARER_PATTERN.exec(authorization.trim())?.[1] ?? '');
  const isInvited = token !== null && service.isInvite(token);
  const address = socket.remoteAddress ?? '';
  const allowed = isInvited ? { ok: true as const } : limit.take(address);
  if (!allowed.ok) {
    const what = 'too many registrations from this address: wait, and try again';
    return sendUnavailable(reply, allowed.retryAfter, what, 429);
  }
  const registration = await service.register(metadata, token, rateLimitKey(address)).catch((error: unknown) => {
    if (error instanceof Failure && (error.code === 'store_unwritable' || error.code === 'not_allowed')) return error;
    throw error;
  });
  if (registration instanceof Failure) {
    return sendStoreUnwritable(reply, "the hub cannot register another appliance at present: see the hub's log");
  }
  switch (registration.kind) {
    case 'closed':
      // RFC 6750, 3.1: without credentials in the request, the challenge has no error code.
      reply.header('www-authenticate', CHALLENGE);
      return sendError(reply, 'invalid_token', REGISTRATION_CLOSED);
    case 'token_refused':
      reply.header(
        'www-authenticate',
        `${CHALLENGE}, error="invalid_token", error_description="${INITIAL_ACCESS_TOKEN_INVALID}"`,
      );
      return sendError(reply, 'invalid_token', INITIAL_ACCESS_TOKEN_INVALID);
    case 'full': {
      const what =
        'too many appliances wait for approval: try again after an installer has approved or removed some of them';
      return sendUnavailable(reply, registration.retryAfter, what, 429);
    }
    case 'invalid':
      return sendError(reply, 'invalid_client_metadata', registration.description);
    case 'registered': {
      const { clientId, name, scope, secret, needsApproval } = registration;
      const [time] = service.timeReadings();
      return setNoStore(reply)
        .code(201)
        .send({
          client_id: clientId,
          ...(time === undefined ? {} : { client_id_issued_at: Math.floor(time.now / 1000) }),
          ...(secret === null
            ? { jwks: { keys: metadata.keys } }
            : { client_secret: secret.reveal(), client_secret_expires_at: 0 }),
          client_name: name,
          token_endpoint_auth_method: method,
          grant_types: GRANT_TYPES,
          response_types: [],
          ...(scope === null ? {} : { scope }),
          ...(metadata.softwareId === null ? {} : { software_id: metadata.softwareId }),
          ca_fingerprint: service.caFingerprint,
          ...(needsApproval ? { comparison_code: comparisonCode(clientId) } : {}),
        });
    }
  }
}
