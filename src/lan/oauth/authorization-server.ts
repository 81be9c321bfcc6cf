import type { FastifyInstance } from 'fastify';
import type { LanService } from '../../core/lan-service.ts';
import { serveDeviceAuthorization } from './device-authorization.ts';
import { FORM } from './form-endpoint.ts';
import { serveMetadata } from './metadata.ts';
import { serveRegistration } from './registration.ts';
import { serveRevocation } from './revocation.ts';
import { serveToken } from './token.ts';

/** The OAuth authorization server that appliances talk to. */
export function serveAuthorizationServer(app: FastifyInstance, service: LanService): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser([FORM, 'application/json'], { parseAs: 'string' }, (_request, body, done) =>
    done(null, body),
  );
  serveMetadata(app);
  serveToken(app, service);
  serveDeviceAuthorization(app, service);
  serveRegistration(app, service);
  serveRevocation(app, service);
}
