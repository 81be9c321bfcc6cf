import type { FastifyReply } from 'fastify';
import type { TokenResult, UnavailableReason, UnusableTokenReason } from '../../core/lan-service.ts';
import type { PairingFailureReason } from '../../core/pairings/pairing.ts';
import type { Secret } from '../../core/secret.ts';
import { type OAuthErrorCode, sendError, sendUnavailable, setNoStore } from './errors.ts';
import type { AuthenticatedClientRequest } from './form-endpoint.ts';

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
export function sendTokenResponse(
  { appliance: { name }, request, reply }: AuthenticatedClientRequest,
  result: TokenResult,
  refreshToken?: Secret,
): FastifyReply {
  const hubPage = () => ({ error_uri: `https://${request.host}/` });
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
      return sendError(reply, 'invalid_grant', `${name} is not paired with the portal`, hubPage());
    case 'needs_pairing':
      return sendError(reply, 'invalid_grant', `${name} must be paired again`, hubPage());
    case 'other_scope': {
      const expected = result.scope === null ? 'no scope' : `scope ${result.scope}`;
      return sendError(reply, 'invalid_scope', `the grant of ${name} has ${expected}: omit the scope parameter`);
    }
    case 'unavailable':
      return sendUnavailable(
        reply,
        result.retryAfter,
        `${NO_USABLE_TOKEN_DESCRIPTIONS[result.unusableTokenReason]}, and ${UNAVAILABLE_DESCRIPTIONS[result.reason]}`,
      );
  }
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
export function sendDeviceFlowError({ reply }: AuthenticatedClientRequest, reason: PairingFailureReason): FastifyReply {
  return sendError(reply, ...DEVICE_FLOW_ERRORS[reason]);
}
