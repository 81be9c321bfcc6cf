import type { FastifyInstance, FastifyReply } from 'fastify';
import { Failure } from '../../core/failure.ts';
import type { LanService } from '../../core/lan-service.ts';
import { sendError, sendUnavailable, setNoStore } from './errors.ts';
import { type AuthenticatedClientRequest, type FormEndpointContext, serveFormEndpoint } from './form-endpoint.ts';
import { DeviceAuthorizationFormSchema, validateForm } from './request-schemas.ts';

/** `Retry-After` while the hub can't write its store, in seconds. */
const STORE_RETRY_AFTER = 60;

/** The device authorization endpoint (RFC 8628, 3.1). */
export function serveDeviceAuthorizationEndpoint(
  app: FastifyInstance,
  service: Pick<LanService, 'beginDeviceFlow'>,
  context: FormEndpointContext,
): void {
  serveFormEndpoint(app, '/oauth/device_authorization', context, (request) =>
    handleDeviceAuthorizationRequest(service, request),
  );
}

async function handleDeviceAuthorizationRequest(
  service: Pick<LanService, 'beginDeviceFlow'>,
  { appliance, form, request, reply }: AuthenticatedClientRequest,
): Promise<FastifyReply> {
  const validation = validateForm(DeviceAuthorizationFormSchema, form);
  if (validation.kind === 'malformed') return sendError(reply, 'invalid_request', validation.description);
  const outcome = await service.beginDeviceFlow(appliance, validation.form.scope ?? null).catch((error: unknown) => {
    if (error instanceof Failure && error.code === 'store_unwritable') return null;
    throw error;
  });
  if (outcome === null) return sendUnavailable(reply, STORE_RETRY_AFTER, 'the hub cannot write its store at present');
  switch (outcome.kind) {
    case 'begun': {
      const { deviceCode, userCode, expiresIn, interval } = outcome.authorization;
      const page = `https://${request.host}/pair`;
      return setNoStore(reply).send({
        device_code: deviceCode.reveal(),
        user_code: userCode,
        verification_uri: page,
        verification_uri_complete: `${page}?user_code=${userCode}`,
        expires_in: expiresIn,
        interval,
      });
    }
    case 'other_scope': {
      const expected = outcome.scope === null ? 'without a scope' : `with scope ${outcome.scope}`;
      return sendError(reply, 'invalid_scope', `${appliance.name} is registered ${expected}: omit the scope parameter`);
    }
    case 'unavailable':
      return sendUnavailable(reply, outcome.retryAfter, 'too many device flows were started: wait, and try again', 429);
  }
}
