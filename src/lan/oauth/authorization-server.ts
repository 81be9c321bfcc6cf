import type { FastifyInstance } from 'fastify';
import type { LanService } from '../../core/lan-service.ts';
import { AddressLimit, type LimitSurroundings } from '../../system/address-limit.ts';
import { FORM } from '../../system/form.ts';
import { clientAuthentication, type IsOwn } from './client-authentication.ts';
import { serveDeviceAuthorization } from './device-authorization.ts';
import type { FormGate } from './form-endpoint.ts';
import { serveMetadata } from './metadata.ts';
import { serveRegistration } from './registration.ts';
import { serveRevocation } from './revocation.ts';
import { serveToken } from './token.ts';
import type { UsedAssertions } from './used-assertions.ts';

/** One device may fail to authenticate so often. */
const FAILURES = { most: 10, every: 6000 };

/** The OAuth authorization server that appliances talk to. */
export function serveAuthorizationServer(
  app: FastifyInstance,
  service: LanService,
  isOwn: IsOwn,
  surroundings: LimitSurroundings & { readonly usedAssertions?: UsedAssertions | undefined },
): void {
  const gate: FormGate = {
    authenticate: clientAuthentication(service, isOwn, surroundings.usedAssertions),
    heard: (appliance) => service.heard(appliance),
    failures: new AddressLimit('too many failed authentications', FAILURES, surroundings),
    clock: surroundings.clock,
  };
  app.removeAllContentTypeParsers();
  app.addContentTypeParser([FORM, 'application/json'], { parseAs: 'string' }, (_request, body, done) =>
    done(null, body),
  );
  serveMetadata(app);
  serveToken(app, service, gate);
  serveDeviceAuthorization(app, service, gate);
  serveRegistration(app, service, surroundings);
  serveRevocation(app, service, gate);
}
