import type { FastifyInstance } from 'fastify';
import type { LanService } from '../../core/lan-service.ts';
import { sendError, sendUnavailable, setNoStore } from './errors.ts';
import { type FormEndpointContext, serveFormEndpoint } from './form-endpoint.ts';
import { RevocationFormSchema, validateForm } from './request-schemas.ts';

/**
 * The revocation endpoint (RFC 7009): an appliance says that the cloud refuses its token, or that it needs its refresh token
 * no longer. Whatever else it sends has been revoked as far as anybody can tell (2.2), so that the answer is the same.
 */
export function serveRevocationEndpoint(app: FastifyInstance, service: LanService, gate: FormEndpointContext): void {
  serveFormEndpoint(app, '/oauth/revoke', gate, async ({ appliance, form, reply }) => {
    const read = validateForm(RevocationFormSchema, form);
    if (read.kind === 'malformed') return sendError(reply, 'invalid_request', read.description);
    const revocation = await service.revoke(appliance, read.form.token);
    if (revocation.kind === 'unavailable') {
      // RFC 7009, 2.2.1: the appliance takes it that its token still exists, and comes back.
      const what = 'the hub can not write its store just now: its log tells why';
      return sendUnavailable(reply, revocation.retryAfter, what);
    }
    // RFC 7009, 2.2: nobody reads the body; but some clients take nothing but JSON, and JSON is never empty.
    return setNoStore(reply).send({});
  });
}
