import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { LanService } from '../../core/lan-service.ts';
import { FORM_MEDIA_TYPE } from '../../system/http/form.ts';
import {
  ClientRateLimiter,
  type RateLimiterContext,
  WRONG_CODE_LIMIT,
} from '../../system/limits/client-rate-limiter.ts';
import type { AssertionReplayCache } from './assertion-replay-cache.ts';
import { createClientAuthenticator, type OwnHostPredicate } from './client-authentication.ts';
import { serveConnectionsEndpoint } from './connections.ts';
import { serveDeviceAuthorizationEndpoint } from './device-authorization.ts';
import { sendError } from './errors.ts';
import type { FormEndpointContext } from './form-endpoint.ts';
import { serveRegistrationEndpoint } from './registration.ts';
import { CONNECTION_PATH } from './requested-connection.ts';
import { serveRevocationEndpoint } from './revocation.ts';
import { METADATA_PATHS, serveAuthorizationEndpoint, serveMetadataEndpoint } from './server-metadata.ts';
import { serveTokenEndpoint } from './token.ts';

/** What the endpoints of one listener need. */
interface OAuthEndpointsOptions extends RateLimiterContext, Pick<FormEndpointContext, 'page'> {
  readonly isOwn: OwnHostPredicate;
  readonly usedAssertions: AssertionReplayCache;
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
  serveTokenEndpoint(app, context);
  serveDeviceAuthorizationEndpoint(app, context);
  serveRegistrationEndpoint(app, service, environment);
  serveRevocationEndpoint(app, context);
  serveConnectionsEndpoint(app, context);
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
