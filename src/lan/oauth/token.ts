import type { FastifyInstance, FastifyReply } from 'fastify';
import type { LanService, TokenRequest } from '../../core/lan-service.ts';
import { Secret } from '../../core/secret.ts';
import { sendError } from './errors.ts';
import { type AuthenticatedClientRequest, type FormEndpointContext, serveFormEndpoint } from './form-endpoint.ts';
import { DEVICE_CODE_GRANT_TYPE, TOKEN_FORM_SCHEMAS, validateForm } from './request-schemas.ts';
import { GRANT_TYPES } from './server-metadata.ts';
import { sendDeviceFlowError, sendTokenResponse } from './token-responses.ts';

/** Whoever asks is answered within this, in ms, from when the request came: just before a client's limit of 10 s. */
const RESPONSE_TIMEOUT = 9500;

/** The token endpoint (RFC 6749, 3.2). */
export function serveTokenEndpoint(app: FastifyInstance, service: LanService, gate: FormEndpointContext): void {
  serveFormEndpoint(app, '/oauth/token', gate, (request) => handleTokenRequest(service, request));
}

async function handleTokenRequest(service: LanService, request: AuthenticatedClientRequest): Promise<FastifyReply> {
  const { appliance, form, elapsed, reply } = request;
  const given = form.get('grant_type');
  if (given === undefined) return sendError(reply, 'invalid_request', 'grant_type is missing');
  const grantType = GRANT_TYPES.find((known) => known === given);
  if (grantType === undefined) {
    return sendError(reply, 'unsupported_grant_type', `the hub knows grant_type ${GRANT_TYPES.join(', ')}`);
  }
  const read = validateForm(TOKEN_FORM_SCHEMAS[grantType], form);
  if (read.kind === 'malformed') return sendError(reply, 'invalid_request', read.description);
  const asked = read.form;
  // Who the appliance is may have taken its time to find out.
  const timeout = Math.max(0, RESPONSE_TIMEOUT - elapsed());
  const wanted = { scope: asked.scope ?? null, minTtl: (asked.min_ttl ?? 0) * 1000, timeout };
  switch (asked.grant_type) {
    case 'client_credentials':
      return sendTokenResponse(request, await service.issueToken(appliance, wanted));
    case 'refresh_token': {
      const refreshToken = asked.refresh_token;
      if (!service.hasSession(appliance, refreshToken)) {
        return sendError(reply, 'invalid_grant', `${appliance.name} has no such refresh_token, or no longer`);
      }
      // Said again though it stays the same: some clients take an answer without one for the end of it.
      return sendTokenResponse(request, await service.issueToken(appliance, wanted), new Secret(refreshToken));
    }
    case DEVICE_CODE_GRANT_TYPE:
      return handleDeviceTokenRequest(service, request, asked.device_code, wanted);
  }
}

/** A poll of the device flow (RFC 8628, 3.4 and 3.5). */
async function handleDeviceTokenRequest(
  service: LanService,
  request: AuthenticatedClientRequest,
  deviceCode: string,
  wanted: TokenRequest,
): Promise<FastifyReply> {
  const { appliance, reply } = request;
  const poll = await service.pollDeviceFlow(appliance, deviceCode);
  switch (poll.kind) {
    case 'pending':
      return sendError(reply, 'authorization_pending', 'nobody has logged in yet');
    case 'slow_down':
      return sendError(reply, 'slow_down', 'wait five seconds longer between two requests');
    case 'unknown':
      return sendError(reply, 'invalid_grant', `${appliance.name} was given no such device_code`);
    case 'failed':
      return sendDeviceFlowError(request, poll.reason);
    case 'paired': {
      const result = await service.issueToken(appliance, wanted);
      if (result.kind !== 'token') return sendTokenResponse(request, result);
      const refreshToken = await service.createSession(appliance, deviceCode);
      // What is left of the token is told as it is now: to write the session down may have taken its time.
      const atHand = { ...wanted, minTtl: 0, timeout: 0 };
      return sendTokenResponse(request, await service.issueToken(appliance, atHand), refreshToken);
    }
  }
}
