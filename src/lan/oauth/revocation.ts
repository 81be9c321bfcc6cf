import type { FastifyInstance } from 'fastify';
import type { LanService } from '../../core/lan-service.ts';
import { noStore, sendError, sendUnavailable } from './errors.ts';
import { type FormEndpointContext, serveForm } from './form-endpoint.ts';
import { RevocationForm, readForm } from './schemas.ts';

/**
 * The revocation endpoint (RFC 7009): an appliance says that the cloud refuses its token, or that it needs its refresh token
 * no longer. Whatever else it sends has been revoked as far as anybody can tell (2.2), so that the answer is the same.
 */
export function serveRevocation(app: FastifyInstance, service: LanService, gate: FormEndpointContext): void {
  serveForm(app, '/oauth/revoke', gate, async ({ appliance, form, reply }) => {
    const read = readForm(RevocationForm, form);
    if (read.kind === 'malformed') return sendError(reply, 'invalid_request', read.description);
    const revocation = await service.revoke(appliance, read.form.token);
    if (revocation.kind === 'unavailable') {
      // RFC 7009, 2.2.1: the appliance takes it that its token still exists, and comes back.
      const what = 'the hub can not write its store just now: its log tells why';
      return sendUnavailable(reply, revocation.retryAfter, what);
    }
    // RFC 7009, 2.2: nobody reads the body; but some clients take nothing but JSON, and JSON is never empty.
    return noStore(reply).send({});
  });
}
