import type { FastifyInstance, FastifyReply } from 'fastify';
import { Failure } from '../../core/failure.ts';
import type { LanService } from '../../core/lan-service.ts';
import { sendError, sendStoreUnwritable, sendUnavailable, setNoStore } from './errors.ts';
import { type AuthenticatedClientRequest, type FormEndpointContext, serveFormEndpoint } from './form-endpoint.ts';
import { DeviceAuthorizationFormSchema, validateForm } from './request-schemas.ts';
import { CONNECTION_PATH } from './requested-connection.ts';
import { sendOtherConnection } from './token.ts';

/** The device authorization endpoint (RFC 8628, 3.1). */
export function serveDeviceAuthorizationEndpoint(app: FastifyInstance, context: FormEndpointContext): void {
  for (const path of ['/oauth/device_authorization', `${CONNECTION_PATH}/oauth/device_authorization`])
    serveFormEndpoint(app, path, context, (request) => handleDeviceAuthorizationRequest(context.service, request));
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
  if (outcome === null) return sendStoreUnwritable(reply);
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
