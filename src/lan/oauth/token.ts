import type { FastifyInstance, FastifyReply } from 'fastify';
import type { LanService, TokenRequest } from '../../core/lan-service.ts';
import { Secret } from '../../core/secret.ts';
import { sendError } from './errors.ts';
import { type AuthenticatedClientRequest, type FormEndpointContext, serveFormEndpoint } from './form-endpoint.ts';
import { DEVICE_CODE_GRANT_TYPE, TOKEN_FORM_SCHEMAS, validateForm } from './request-schemas.ts';
import { GRANT_TYPES } from './server-metadata.ts';
import { sendDeviceFlowError, sendTokenResponse } from './token-responses.ts';

/** The longest time from a request to its response, in ms: just below a client timeout of 10 s. */
const RESPONSE_TIMEOUT = 9500;

/** The token endpoint (RFC 6749, 3.2). */
export function serveTokenEndpoint(app: FastifyInstance, service: LanService, context: FormEndpointContext): void {
  serveFormEndpoint(app, '/oauth/token', context, (request) => handleTokenRequest(service, request));
}

async function handleTokenRequest(service: LanService, request: AuthenticatedClientRequest): Promise<FastifyReply> {
  const { appliance, form, elapsed, reply } = request;
  const requestedType = form.get('grant_type');
  if (requestedType === undefined) return sendError(reply, 'invalid_request', 'grant_type is missing');
  const grantType = GRANT_TYPES.find((supported) => supported === requestedType);
  if (grantType === undefined) {
    return sendError(reply, 'unsupported_grant_type', `grant_type must be one of ${GRANT_TYPES.join(', ')}`);
  }
  const validation = validateForm(TOKEN_FORM_SCHEMAS[grantType], form);
  if (validation.kind === 'malformed') return sendError(reply, 'invalid_request', validation.description);
  const parameters = validation.form;
  // Client authentication may have taken a while.
  const timeout = Math.max(0, RESPONSE_TIMEOUT - elapsed());
  const tokenRequest = { scope: parameters.scope ?? null, minTtl: (parameters.min_ttl ?? 0) * 1000, timeout };
  switch (parameters.grant_type) {
    case 'client_credentials':
      return sendTokenResponse(request, await service.issueToken(appliance, tokenRequest));
    case 'refresh_token': {
      const refreshToken = parameters.refresh_token;
      const hasSession = () => service.hasSession(appliance, refreshToken);
      if (!hasSession() && !((await service.lookForNews()) && hasSession())) {
        return sendError(reply, 'invalid_grant', `the refresh_token of ${appliance.name} is unknown or was revoked`);
      }
      // Repeated although it does not rotate: some clients drop their refresh token if the response has none.
      return sendTokenResponse(request, await service.issueToken(appliance, tokenRequest), new Secret(refreshToken));
    }
    case DEVICE_CODE_GRANT_TYPE:
      return handleDeviceTokenRequest(service, request, parameters.device_code, tokenRequest);
  }
}

/** A poll of the device flow (RFC 8628, 3.4 and 3.5). */
async function handleDeviceTokenRequest(
  service: LanService,
  request: AuthenticatedClientRequest,
  deviceCode: string,
  tokenRequest: TokenRequest,
): Promise<FastifyReply> {
  const { appliance, reply } = request;
  const poll = await service.pollDeviceFlow(appliance, deviceCode);
  switch (poll.kind) {
    case 'pending':
      return sendError(reply, 'authorization_pending', 'nobody has logged in yet');
    case 'slow_down':
      return sendError(reply, 'slow_down', 'add five seconds to the polling interval');
    case 'unknown':
      return sendError(
        reply,
        'invalid_grant',
        `the device_code is unknown, or was used: it must be one that the hub issued to ${appliance.name}`,
      );
    case 'failed':
      return sendDeviceFlowError(request, poll.reason);
    case 'paired': {
      const result = await service.issueToken(appliance, tokenRequest);
      if (result.kind !== 'token') return sendTokenResponse(request, result);
      const refreshToken = await service.createSession(appliance, deviceCode);
      // Saving the session may have taken a while, so `expires_in` is computed again, for the current access token.
      const currentToken = { ...tokenRequest, minTtl: 0, timeout: 0 };
      return sendTokenResponse(request, await service.issueToken(appliance, currentToken), refreshToken);
    }
  }
}
