import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Failure } from '../../core/failure.ts';
import type { LanService } from '../../core/lan-service.ts';
import { unmapIpv4 } from '../../system/addresses.ts';
import { comparisonCode } from '../../system/comparison-code.ts';
import { mediaTypeOf } from '../../system/http/form.ts';
import { ClientRateLimiter, type RateLimiterContext } from '../../system/limits/client-rate-limiter.ts';
import { NeighbourTable } from '../../system/limits/neighbour-table.ts';
import { rateLimitKeys } from '../../system/limits/rate-limit-keys.ts';
import { parseClientMetadata } from './client-metadata.ts';
import { createErrorHandler, sendError, sendUnavailable, setNoStore } from './errors.ts';
import { GRANT_TYPES } from './server-metadata.ts';

/** RFC 7591, 3.1. */
const JSON_TYPE = 'application/json';
/** RFC 6750, 2.1. */
const BEARER_PATTERN = /^bearer +([\w.~+/-]+=*)$/i;
const CHALLENGE = 'Bearer realm="latchkey"';
/** One device may come so often without an initial access token that is good. */
const UNINVITED_REGISTRATION_LIMIT = { burst: 10, interval: 60_000 };
/** How long an appliance is to wait while the hub can't write its store, in seconds. */
const STORE_RETRY_AFTER = 60;

const REGISTRATION_CLOSED =
  'registration is closed: ask an installer for an initial access token (latchkey invite) and send it as Authorization: Bearer, or ask to have registration held open (latchkey registration open --for 10m)';
const INITIAL_ACCESS_TOKEN_INVALID =
  'the initial access token is wrong, used up or too old: ask an installer for another (latchkey invite)';

/** The client registration endpoint (RFC 7591, 3). */
export function serveRegistrationEndpoint(
  app: FastifyInstance,
  service: LanService,
  environment: RateLimiterContext,
): void {
  const limit = new ClientRateLimiter('too_many_registrations', UNINVITED_REGISTRATION_LIMIT, environment);
  const links = new NeighbourTable();
  app.post('/oauth/register', {
    errorHandler: createErrorHandler(JSON_TYPE),
    async handler(request, reply) {
      if (mediaTypeOf(request.headers['content-type']) !== JSON_TYPE)
        return sendError(reply, 'invalid_request', `send the request as ${JSON_TYPE}`);
      let body: unknown;
      try {
        body = JSON.parse(typeof request.body === 'string' ? request.body : '');
      } catch {
        return sendError(reply, 'invalid_request', 'the body is no JSON');
      }
      const metadata = parseClientMetadata(body);
      if (metadata.kind === 'invalid') return sendError(reply, 'invalid_client_metadata', metadata.description);
      return register({ service, limit, links }, request, reply, metadata);
    },
  });
}

async function register(
  { service, limit, links }: { service: LanService; limit: ClientRateLimiter; links: NeighbourTable },
  { headers: { authorization }, socket }: FastifyRequest,
  reply: FastifyReply,
  { metadata, method }: Extract<ReturnType<typeof parseClientMetadata>, { kind: 'read' }>,
): Promise<FastifyReply> {
  const token = authorization === undefined ? null : (BEARER_PATTERN.exec(authorization.trim())?.[1] ?? '');
  const isInvited = token !== null && service.isInvite(token);
  const address = unmapIpv4(socket.remoteAddress ?? '');
  const keys = rateLimitKeys(address);
  // One key alone is an IPv4 address, or a distant network.
  const mayWait = token === null && service.isRegistrationOpen;
  const link = mayWait && keys.length > 1 ? await links.findLinkLayerAddress(address) : null;
  // The link-layer address alone, if it is known: no neighbour uses up what all IPv6 addresses of the network may together.
  const limited = link === null ? keys : [{ key: link, weight: 1 }];
  const allowed = isInvited ? { ok: true as const } : limit.take(address, limited);
  if (!allowed.ok) {
    const what = 'too many registrations from this address: wait, and try again';
    return sendUnavailable(reply, allowed.retryAfter, what, 429);
  }
  const from = { address, shares: link === null ? keys.map(({ key }) => key) : [link, address] };
  const registration = await service.register(metadata, token, from).catch((error: unknown) => {
    if (error instanceof Failure && (error.code === 'store_unwritable' || error.code === 'not_allowed')) return error;
    throw error;
  });
  if (registration instanceof Failure) {
    return sendUnavailable(
      reply,
      STORE_RETRY_AFTER,
      'the hub can not take in another appliance just now: its log tells why',
    );
  }
  switch (registration.kind) {
    case 'closed':
      // Of a request without any credentials the challenge says no more (RFC 6750, 3.1).
      reply.header('www-authenticate', CHALLENGE);
      return sendError(reply, 'invalid_token', REGISTRATION_CLOSED);
    case 'token_refused':
      reply.header(
        'www-authenticate',
        `${CHALLENGE}, error="invalid_token", error_description="${INITIAL_ACCESS_TOKEN_INVALID}"`,
      );
      return sendError(reply, 'invalid_token', INITIAL_ACCESS_TOKEN_INVALID);
    case 'full': {
      const what = 'too many appliances wait for an installer to approve them: wait until some of them are';
      return sendUnavailable(reply, registration.retryAfter, what, 429);
    }
    case 'invalid':
      return sendError(reply, 'invalid_client_metadata', registration.description);
    case 'registered': {
      const { clientId, name, scope, secret, needsApproval: waiting } = registration;
      const [issued] = service.timeReadings();
      return setNoStore(reply)
        .code(201)
        .send({
          client_id: clientId,
          ...(issued === undefined ? {} : { client_id_issued_at: Math.floor(issued.now / 1000) }),
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
          ...(waiting ? { comparison_code: comparisonCode(clientId) } : {}),
        });
    }
  }
}
