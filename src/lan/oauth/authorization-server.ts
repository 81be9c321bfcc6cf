import type { FastifyInstance } from 'fastify';
import type { LanService } from '../../core/lan-service.ts';
import { FORM_MEDIA_TYPE } from '../../system/http/form.ts';
import {
  ClientRateLimiter,
  type RateLimiterContext,
  WRONG_CODE_LIMIT,
} from '../../system/limits/client-rate-limiter.ts';
import type { AssertionReplayCache } from './assertion-replay-cache.ts';
import { createClientAuthenticator, type OwnHostPredicate } from './client-authentication.ts';
import { serveDeviceAuthorizationEndpoint } from './device-authorization.ts';
import type { FormEndpointContext } from './form-endpoint.ts';
import { serveRegistrationEndpoint } from './registration.ts';
import { serveRevocationEndpoint } from './revocation.ts';
import { serveMetadataEndpoint } from './server-metadata.ts';
import { serveTokenEndpoint } from './token.ts';

/** Registers the OAuth endpoints for appliances. */
export function serveOAuthEndpoints(
  app: FastifyInstance,
  service: LanService,
  isOwn: OwnHostPredicate,
  environment: RateLimiterContext & { readonly usedAssertions?: AssertionReplayCache | undefined },
): void {
  const context: FormEndpointContext = {
    authenticate: createClientAuthenticator(service, isOwn, environment.usedAssertions),
    onAuthenticated: (appliance) => service.recordAuthentication(appliance),
    failureLimiter: new ClientRateLimiter('too_many_failed_authentications', WRONG_CODE_LIMIT, environment),
    clock: environment.clock,
  };
  app.removeAllContentTypeParsers();
  app.addContentTypeParser([FORM_MEDIA_TYPE, 'application/json'], { parseAs: 'string' }, (_request, body, done) =>
    done(null, body),
  );
  serveMetadataEndpoint(app);
  serveTokenEndpoint(app, service, context);
  serveDeviceAuthorizationEndpoint(app, service, context);
  serveRegistrationEndpoint(app, service, environment);
  serveRevocationEndpoint(app, service, context);
}
