import type { FastifyInstance, FastifyReply } from 'fastify';
import { connectionIds } from '../../core/appliances/appliance.ts';
import type {
  LanService,
  TokenRequest,
  TokenResult,
  UnavailableReason,
  UnusableTokenReason,
} from '../../core/lan-service.ts';
import type { PairingFailureReason } from '../../core/pairings/pairing.ts';
import { Secret } from '../../core/secret.ts';
import { type OAuthErrorCode, sendError, sendUnavailable, setNoStore } from './errors.ts';
import { type AuthenticatedClientRequest, type FormEndpointContext, serveFormEndpoint } from './form-endpoint.ts';
import { DEVICE_CODE_GRANT_TYPE, TOKEN_FORM_SCHEMAS, validateForm } from './request-schemas.ts';
import { CONNECTION_PATH } from './requested-connection.ts';
import { GRANT_TYPES } from './server-metadata.ts';

/** The token endpoint (RFC 6749, 3.2), and that of each connection. */
export function serveTokenEndpoint(app: FastifyInstance, context: FormEndpointContext): void {
  for (const path of ['/oauth/token', `${CONNECTION_PATH}/oauth/token`])
    serveFormEndpoint(app, path, context, (request) => handleTokenRequest(context.service, request));
}

async function handleTokenRequest(service: LanService, request: AuthenticatedClientRequest): Promise<FastifyReply> {
  const { appliance, connection, form, deadline, reply } = request;
  const requestedType = form.get('grant_type');
  if (requestedType === undefined) return sendError(reply, 'invalid_request', 'grant_type is missing');
  const grantType = GRANT_TYPES.find((supported) => supported === requestedType);
  if (grantType === undefined) {
    return sendError(reply, 'unsupported_grant_type', `grant_type must be one of ${GRANT_TYPES.join(', ')}`);
  }
  const validation = validateForm(TOKEN_FORM_SCHEMAS[grantType], form);
  if (validation.kind === 'malformed') return sendError(reply, 'invalid_request', validation.description);
  const parameters = validation.form;
  const tokenRequest = {
    ...(connection !== undefined && { connection }),
    scope: parameters.scope ?? null,
    minTtl: (parameters.min_ttl ?? 0) * 1000,
    deadline,
  };
  switch (parameters.grant_type) {
    case 'client_credentials':
      return sendTokenResponse(request, await service.issueToken(appliance, tokenRequest));
    case 'refresh_token': {
      const refreshToken = parameters.refresh_token;
      const find = () => service.findSession(appliance, refreshToken);
      const session = find() ?? ((await service.lookForNews(deadline)) ? find() : undefined);
      if (session === undefined) {
        return sendError(reply, 'invalid_grant', `the refresh_token of ${appliance.name} is unknown or was revoked`);
      }
      if (isForOther(session.connection, request)) return sendForOther('refresh_token', session.connection, request);
      // Repeated although it does not rotate: some clients drop their refresh token if the response has none.
      const result = await service.issueToken(appliance, { ...tokenRequest, ...session });
      return sendTokenResponse({ ...request, ...session }, result, new Secret(refreshToken));
    }
    case DEVICE_CODE_GRANT_TYPE:
      return handleDeviceTokenRequest(service, request, parameters.device_code, tokenRequest);
  }
}

/** `Retry-After` of a poll that took too long, in seconds. */
const POLL_RETRY_AFTER = 5;

/** A poll of the device flow (RFC 8628, 3.4 and 3.5). */
async function handleDeviceTokenRequest(
  service: LanService,
  request: AuthenticatedClientRequest,
  deviceCode: string,
  tokenRequest: TokenRequest,
): Promise<FastifyReply> {
  const { appliance, deadline, reply } = request;
  const poll = await service.pollDeviceFlow(appliance, deviceCode, deadline);
  if (poll === null) return sendUnavailable(reply, POLL_RETRY_AFTER, 'the hub is still loading the device flows');
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
      if (isForOther(poll.connection, request)) return sendForOther('device_code', poll.connection, request);
      const { connection } = poll;
      const named = { ...request, connection };
      const ofFlow = { ...tokenRequest, connection };
      const result = await service.issueToken(appliance, ofFlow);
      if (result.kind !== 'token') return sendTokenResponse(named, result);
      const refreshToken = await service.createSession(appliance, deviceCode, connection, deadline);
      if (refreshToken === null)
        return sendUnavailable(reply, POLL_RETRY_AFTER, 'the refresh_token is not stored yet: poll again');
      // Saving the session may have taken a while, so `expires_in` is computed again, for the current access token.
      const currentToken = { ...ofFlow, minTtl: 0 };
      return sendTokenResponse(named, await service.issueToken(appliance, currentToken), refreshToken);
    }
  }
}

/** Whether a request names another connection than the one that its grant is for (RFC 8707, 2.2). */
function isForOther(granted: string | undefined, { connection }: AuthenticatedClientRequest): granted is string {
  return granted !== undefined && connection !== undefined && connection !== granted;
}

function sendForOther(
  grant: 'device_code' | 'refresh_token',
  granted: string,
  { appliance, reply }: AuthenticatedClientRequest,
): FastifyReply {
  return sendError(reply, 'invalid_target', `this ${grant} of ${appliance.name} is for /connections/${granted}`);
}

const UNAVAILABLE_DESCRIPTIONS: Readonly<Record<UnavailableReason, string>> = {
  portal_unreachable: 'the portal is unreachable',
  portal_deferred: 'the portal asks the hub to retry later',
  portal_rejected: "the portal, or something before it, rejects the hub's request",
  answer_lost: "the portal's answer was lost",
  misconfigured: "the portal does not accept the hub's configuration",
  clock_unknown: "the hub's clock does not match the validity of the portal's certificate",
  store_unwritable: 'the hub cannot write its store',
  database_unavailable: 'the hub cannot reach its database',
  no_answer_yet: 'the portal has not issued a new one yet',
  replaced_recently: 'the hub replaces a rejected one at most once a minute',
};

const NO_USABLE_TOKEN_DESCRIPTIONS: Readonly<Record<UnusableTokenReason, string>> = {
  expired: 'the current access token has expired',
  rejected: 'the cloud rejected the current access token',
  age_unknown: 'the age of the current access token is unknown',
};

/**
 * Sends a token response, or the error that explains why there is no token (RFC 6749, 5).
 * @param refreshToken issued by the hub, not by the portal
 */
function sendTokenResponse(
  { appliance, connection, page, reply }: AuthenticatedClientRequest,
  result: TokenResult,
  refreshToken?: Secret,
): FastifyReply {
  const { name } = appliance;
  const isClear = connectionIds(appliance).length === 1;
  const named = 'connection' in result ? result.connection : isClear ? undefined : connection;
  const login = named === undefined ? name : `the connection ${named} of ${name}`;
  const hubPage = () => ({ error_uri: `${page}/` });
  switch (result.kind) {
    case 'token': {
      const { accessToken, expiresIn, scope, idToken } = result;
      return setNoStore(reply).send({
        access_token: accessToken.reveal(),
        token_type: 'Bearer',
        expires_in: expiresIn,
        ...(refreshToken === undefined ? {} : { refresh_token: refreshToken.reveal() }),
        ...(scope === null ? {} : { scope }),
        ...(idToken === undefined ? {} : { id_token: idToken.reveal() }),
      });
    }
    case 'not_paired':
      return sendError(reply, 'invalid_grant', `${login} is not paired with the portal`, hubPage());
    case 'needs_pairing':
      return sendError(reply, 'invalid_grant', `${login} must be paired again`, hubPage());
    case 'other_scope': {
      const expected = result.scope === null ? 'no scope' : `scope ${result.scope}`;
      return sendError(reply, 'invalid_scope', `the grant of ${login} has ${expected}: omit the scope parameter`);
    }
    case 'other_connection':
      return sendOtherConnection(reply, name, result.connections);
    case 'unavailable':
      return sendUnavailable(
        reply,
        result.retryAfter,
        `${NO_USABLE_TOKEN_DESCRIPTIONS[result.unusableTokenReason]}, and ${UNAVAILABLE_DESCRIPTIONS[result.reason]}`,
      );
  }
}

/** A request that names none of the connections that an appliance uses (RFC 8707, 2). */
export function sendOtherConnection(
  reply: FastifyReply,
  appliance: string,
  connections: readonly string[],
): FastifyReply {
  const choices = connections.map((connection) => `/connections/${connection}`).join(' or ');
  return sendError(
    reply,
    'invalid_target',
    `send the address of a connection that ${appliance} uses as resource: that of this hub with the path ${choices}`,
  );
}

/** The OAuth errors for the appliance that started a failed pairing (RFC 8628, 3.5). */
const DEVICE_FLOW_ERRORS: Readonly<
  Record<PairingFailureReason, readonly [error: OAuthErrorCode, description: string]>
> = {
  refused_by_user: ['access_denied', 'a person denied the access'],
  portal_rejected: ['access_denied', "the portal rejects the hub's request: see the hub's log"],
  foreign_origin: ['access_denied', "the portal returned an address that is not its own: see the hub's log"],
  misconfigured: ['access_denied', "the portal does not accept the hub's credentials: see the hub's log"],
  client_unknown: ['access_denied', "the portal does not know the hub's client_id: see the hub's log"],
  expired: ['expired_token', 'nobody logged in in time: start a new device flow'],
  replaced: ['expired_token', 'another pairing has replaced this one: start a new device flow'],
  cancelled: ['expired_token', 'the pairing was cancelled at the hub: start a new device flow'],
  code_refused: ['expired_token', 'the portal did not accept the authorization code: start a new device flow'],
  answer_lost: ['expired_token', "the portal's answer was lost: start a new device flow"],
};

/** Sends the error for a device flow that has failed. */
function sendDeviceFlowError({ reply }: AuthenticatedClientRequest, reason: PairingFailureReason): FastifyReply {
  return sendError(reply, ...DEVICE_FLOW_ERRORS[reason]);
}
