import type { FastifyInstance } from 'fastify';
import type { LanService } from '../../core/lan-service.ts';
import { FORM } from '../../system/http/form.ts';
import { ClientRateLimiter, type RateLimiterContext } from '../../system/limits/client-rate-limiter.ts';
import type { AssertionReplayCache } from './assertion-replay-cache.ts';
import { clientAuthentication, type IsOwn } from './client-authentication.ts';
import { serveDeviceAuthorization } from './device-authorization.ts';
import type { FormEndpointContext } from './form-endpoint.ts';
import { serveMetadata } from './metadata.ts';
import { serveRegistration } from './registration.ts';
import { serveRevocation } from './revocation.ts';
import { serveToken } from './token.ts';

/** One device may fail to authenticate so often. */
const FAILURES = { burst: 10, interval: 6000 };

/** The OAuth authorization server that appliances talk to. */
export function serveAuthorizationServer(
  app: FastifyInstance,
  service: LanService,
  isOwn: IsOwn,
  environment: RateLimiterContext & { readonly usedAssertions?: AssertionReplayCache | undefined },
): void {
  const gate: FormEndpointContext = {
    authenticate: clientAuthentication(service, isOwn, environment.usedAssertions),
    heard: (appliance) => service.heard(appliance),
    failures: new ClientRateLimiter('too_many_failed_authentications', FAILURES, environment),
    clock: environment.clock,
  };
  app.removeAllContentTypeParsers();
  app.addContentTypeParser([FORM, 'application/json'], { parseAs: 'string' }, (_request, body, done) =>
    done(null, body),
  );
  serveMetadata(app);
  serveToken(app, service, gate);
  serveDeviceAuthorization(app, service, gate);
  serveRegistration(app, service, environment);
  serveRevocation(app, service, gate);
}
