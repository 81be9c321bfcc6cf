import type { FastifyInstance, FastifyReply } from 'fastify';
import type { LanService } from '../../core/lan-service.ts';
import { sendError, sendStoreUnwritable, setNoStore } from './errors.ts';
import { type AuthenticatedClientRequest, type FormEndpointContext, serveFormEndpoint } from './form-endpoint.ts';
import { RevocationFormSchema, validateForm } from './request-schemas.ts';
import { CONNECTION_PATH } from './requested-connection.ts';

/**
 * The revocation endpoint (RFC 7009): an appliance reports that the cloud rejected its access token, or revokes its
 * refresh token. Unknown tokens get the same response (2.2).
 */
export function serveRevocationEndpoint(app: FastifyInstance, context: FormEndpointContext): void {
  // That of a connection is for clients whose assertions are for their issuer. The token says which connection is meant.
  for (const path of ['/oauth/revoke', `${CONNECTION_PATH}/oauth/revoke`])
    serveFormEndpoint(app, path, context, (request) => handleRevocationRequest(context.service, request));
}

async function handleRevocationRequest(
  service: Pick<LanService, 'revoke'>,
  { appliance, form, reply }: AuthenticatedClientRequest,
): Promise<FastifyReply> {
  const validation = validateForm(RevocationFormSchema, form);
  if (validation.kind === 'malformed') return sendError(reply, 'invalid_request', validation.description);
  // RFC 7009, 2.2.1: on a 503 the appliance must assume that its token still exists, and may retry.
  if ((await service.revoke(appliance, validation.form.token)) === 'unwritten') return sendStoreUnwritable(reply);
  // RFC 7009, 2.2: clients ignore the body. But some of them parse it as JSON, which can't be empty.
  return setNoStore(reply).send({});
}
