import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Failure } from '../../core/failure.ts';
import type { LanService } from '../../core/lan-service.ts';
import { FORM_MEDIA_TYPE } from '../../system/http/form.ts';
import {
  ClientRateLimiter,
  type RateLimiterContext,
  WRONG_CODE_LIMIT,
} from '../../system/limits/client-rate-limiter.ts';
import type { AssertionReplayCache } from './assertion-replay-cache.ts';
import { createClientAuthenticator, type OwnHostPredicate } from './client-authentication.ts';
import { sendError, sendUnavailable, setNoStore } from './errors.ts';
import { type AuthenticatedClientRequest, type FormEndpointContext, serveFormEndpoint } from './form-endpoint.ts';
import { serveRegistrationEndpoint } from './registration.ts';
import { DeviceAuthorizationFormSchema, RevocationFormSchema, validateForm } from './request-schemas.ts';
import { CONNECTION_PATH } from './requested-connection.ts';
import { METADATA_PATHS, serveAuthorizationEndpoint, serveMetadataEndpoint } from './server-metadata.ts';
import { sendOtherConnection, serveTokenEndpoint } from './token.ts';

/** What the endpoints of one listener need. */
interface OAuthEndpointsOptions extends RateLimiterContext, Pick<FormEndpointContext, 'page'> {
  readonly isOwn: OwnHostPredicate;
  readonly usedAssertions?: AssertionReplayCache | undefined;
}

/** Registers the OAuth endpoints for appliances. */
export function serveOAuthEndpoints(
  app: FastifyInstance,
  service: LanService,
  { isOwn, page, usedAssertions, ...environment }: OAuthEndpointsOptions,
): void {
  const context: FormEndpointContext = {
    authenticate: createClientAuthenticator(service, isOwn, usedAssertions),
    service,
    page,
    failureLimiter: new ClientRateLimiter('too_many_failed_authentications', WRONG_CODE_LIMIT, environment),
    clock: environment.clock,
  };
  app.removeAllContentTypeParsers();
  app.addContentTypeParser([FORM_MEDIA_TYPE, 'application/json'], { parseAs: 'string' }, (_request, body, done) =>
    done(null, body),
  );
  serveMetadataEndpoint(app);
  serveAuthorizationEndpoint(app, page);
  serveTokenEndpoint(app, service, context);
  serveDeviceAuthorizationEndpoint(app, service, context);
  serveRegistrationEndpoint(app, service, environment);
  serveRevocationEndpoint(app, service, context);
}

/**
 * Over plain HTTP there are no OAuth endpoints. An appliance that asks there learns where they are.
 * @param httpsPort the port of the other listener
 */
export function rejectOAuthOverHttp(app: FastifyInstance, httpsPort: number): void {
  const reject = async (request: FastifyRequest, reply: FastifyReply) => {
    const url = `https://${request.hostname}:${httpsPort}${request.url.split('?')[0]}`;
    return sendError(reply, 'invalid_request', `access is given over HTTPS only: use ${url}`, {}, 404);
  };
  // As early as this, so that no credentials are read.
  for (const url of ['/oauth/*', `${CONNECTION_PATH}/oauth/*`, ...METADATA_PATHS])
    app.route({ method: ['GET', 'POST'], url, onRequest: reject, handler: reject });
}

/**
 * The revocation endpoint (RFC 7009): an appliance reports that the cloud rejected its access token, or revokes its
 * refresh token. Unknown tokens get the same response (2.2).
 */
function serveRevocationEndpoint(app: FastifyInstance, service: LanService, context: FormEndpointContext): void {
  serveFormEndpoint(app, '/oauth/revoke', context, async ({ appliance, form, reply }) => {
    const validation = validateForm(RevocationFormSchema, form);
    if (validation.kind === 'malformed') return sendError(reply, 'invalid_request', validation.description);
    const revocation = await service.revoke(appliance, validation.form.token);
    if (revocation.kind === 'unavailable') {
      // RFC 7009, 2.2.1: on a 503 the appliance must assume that its token still exists, and may retry.
      const what = "the hub cannot write its store at present: see the hub's log";
      return sendUnavailable(reply, revocation.retryAfter, what);
    }
    // RFC 7009, 2.2: clients ignore the body. But some of them parse it as JSON, which can't be empty.
    return setNoStore(reply).send({});
  });
}

/** `Retry-After` while the hub can't write its store, in seconds. */
const STORE_RETRY_AFTER = 60;

/** The device authorization endpoint (RFC 8628, 3.1). */
function serveDeviceAuthorizationEndpoint(
  app: FastifyInstance,
  service: Pick<LanService, 'beginDeviceFlow'>,
  context: FormEndpointContext,
): void {
  for (const path of ['/oauth/device_authorization', `${CONNECTION_PATH}/oauth/device_authorization`])
    serveFormEndpoint(app, path, context, (request) => handleDeviceAuthorizationRequest(service, request));
}

async function handleDeviceAuthorizationRequest(
  service: Pick<LanService, 'beginDeviceFlow'>,
  { appliance, connection, form, page, reply }: AuthenticatedClientRequest,
): Promise<FastifyReply> {
  const validation = validateForm(DeviceAuthorizationFormSchema, form);
  if (validation.kind === 'malformed') return sendError(reply, 'invalid_request', validation.description);
  const scope = validation.form.scope ?? null;
  const outcome = await service.beginDeviceFlow(appliance, scope, connection).catch((error: unknown) => {
    if (error instanceof Failure && error.code === 'store_unwritable') return null;
    throw error;
  });
  if (outcome === null) return sendUnavailable(reply, STORE_RETRY_AFTER, 'the hub cannot write its store at present');
  switch (outcome.kind) {
    case 'begun': {
      const { deviceCode, userCode, expiresIn, interval } = outcome.authorization;
      return setNoStore(reply).send({
        device_code: deviceCode.reveal(),
        user_code: userCode,
        verification_uri: `${page}/pair`,
        verification_uri_complete: `${page}/pair?user_code=${userCode}`,
        expires_in: expiresIn,
        interval,
      });
    }
    case 'other_scope': {
      const expected = outcome.scope === null ? 'without a scope' : `with scope ${outcome.scope}`;
      return sendError(reply, 'invalid_scope', `${appliance.name} is registered ${expected}: omit the scope parameter`);
    }
    case 'other_connection':
      return sendOtherConnection(reply, appliance.name, outcome.connections);
    case 'unavailable':
      return sendUnavailable(reply, outcome.retryAfter, 'too many device flows were started: wait, and try again', 429);
  }
}
