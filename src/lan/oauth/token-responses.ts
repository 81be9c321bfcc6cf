import type { FastifyReply } from 'fastify';
import type { TokenResult, UnavailableReason, UnusableTokenReason } from '../../core/lan-service.ts';
import type { PairingFailureReason } from '../../core/pairings/pairing.ts';
import type { Secret } from '../../core/secret.ts';
import { type OAuthErrorCode, sendError, sendUnavailable, setNoStore } from './errors.ts';
import type { AuthenticatedClientRequest } from './form-endpoint.ts';

const UNAVAILABLE_DESCRIPTIONS: Readonly<Record<UnavailableReason, string>> = {
  portal_unreachable: 'the portal is out of reach',
  portal_deferred: 'the portal asks to come back later',
  portal_rejected: 'the portal rejects the request of the hub',
  answer_lost: 'an answer of the portal was lost',
  misconfigured: 'the portal does not take the hub as it is configured',
  clock_unknown: 'the clock of the hub does not fit the certificate of the portal',
  store_unwritable: 'the hub can not write its store',
  no_answer_yet: 'the portal has given no other yet',
};

const NO_USABLE_TOKEN_DESCRIPTIONS: Readonly<Record<UnusableTokenReason, string>> = {
  expired: 'the token at hand has run out',
  rejected: 'the cloud refused the token at hand',
  age_unknown: 'nobody knows how old the token at hand is',
};

/**
 * Answers with the token, or says why there is none (RFC 6749, 5).
 * @param refreshToken one of the hub's own
 */
export function sendTokenResponse(
  { appliance: { name }, request, reply }: AuthenticatedClientRequest,
  result: TokenResult,
  refreshToken?: Secret,
): FastifyReply {
  const page = () => ({ error_uri: `https://${request.host}/` });
  switch (result.kind) {
    case 'token': {
      const { accessToken, expiresIn, scope } = result;
      return setNoStore(reply).send({
        access_token: accessToken.reveal(),
        token_type: 'Bearer',
        expires_in: expiresIn,
        ...(refreshToken === undefined ? {} : { refresh_token: refreshToken.reveal() }),
        ...(scope === null ? {} : { scope }),
      });
    }
    case 'not_paired':
      return sendError(reply, 'invalid_grant', `${name} is not paired with the portal`, page());
    case 'needs_pairing':
      return sendError(reply, 'invalid_grant', `${name} must be paired again`, page());
    case 'other_scope': {
      const has = result.scope === null ? 'no scope: leave scope out' : `scope ${result.scope}`;
      return sendError(reply, 'invalid_scope', `the grant of ${name} has ${has}`);
    }
    case 'unavailable':
      return sendUnavailable(
        reply,
        result.retryAfter,
        `${NO_USABLE_TOKEN_DESCRIPTIONS[result.unusableTokenReason]}, and ${UNAVAILABLE_DESCRIPTIONS[result.reason]}`,
      );
  }
}

/** How a pairing that came to nothing is told to the appliance that began it (RFC 8628, 3.5). */
const DEVICE_FLOW_ERRORS: Readonly<
  Record<PairingFailureReason, readonly [error: OAuthErrorCode, description: string]>
> = {
  refused_by_user: ['access_denied', 'the person who was asked refused'],
  portal_rejected: ['access_denied', 'the portal rejects the request of the hub: its log tells more'],
  foreign_origin: ['access_denied', 'the portal named an address that is not its own: the log of the hub tells more'],
  misconfigured: ['access_denied', 'the portal does not accept the credentials of the hub: its log tells more'],
  client_unknown: ['access_denied', 'the portal does not know the client_id of the hub: its log tells more'],
  expired: ['expired_token', 'nobody logged in in time: begin again'],
  replaced: ['expired_token', 'another pairing was begun in the place of this one: begin again'],
  cancelled: ['expired_token', 'the pairing was called off at the hub: begin again'],
  code_refused: ['expired_token', 'the portal did not accept what the login brought: begin again'],
  answer_lost: ['expired_token', 'the answer of the portal was lost: begin again'],
};

/** Answers the poll of a device flow that has failed. */
export function sendDeviceFlowError({ reply }: AuthenticatedClientRequest, reason: PairingFailureReason): FastifyReply {
  return sendError(reply, ...DEVICE_FLOW_ERRORS[reason]);
}
