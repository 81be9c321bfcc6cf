import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { FORM_MEDIA_TYPE } from '../../system/http/form.ts';
import { timingSafeEqualText } from '../../system/secret-hash.ts';
import type { ClientAuthenticationMethod } from '../audit/client-audit.ts';
import type { TokenClaims } from '../oauth/bearer-tokens.ts';
import type { Client, EffectiveSettings } from '../settings/effective-settings.ts';
import { requestContext } from './request-context.ts';
import { basicCredentials, mediaType } from './request-form.ts';

/** The result of checking the secrets in a token or revocation request, independent of its grant type. */
interface TokenRequestCredentials {
  readonly authentication: ClientAuthentication;
  /** The claims of its refresh token; null if it has none or the emulator did not issue it. */
  readonly refreshToken: TokenClaims | null;
}

/**
 * Makes {@link readClientRequest} available for all token and revocation requests, and counts refreshes that begin
 * before another one of the same grant was answered. It uses up no code or token.
 */
export function attachTokenRequestCredentials(app: FastifyInstance): void {
  app.decorateRequest('tokenRequest', null);
  app.addHook('preHandler', (request, reply, done) => {
    const { endpoint, portal, authorization, form } = requestContext(request);
    if ((endpoint !== 'token' && endpoint !== 'revoke') || form === null) return done();
    const token = form.get('refresh_token');
    const authentication = authenticateClient(portal.settings, authorization, form);
    const refreshToken = token === undefined ? null : portal.grants.verifyRefreshToken(token);
    request.setDecorator('tokenRequest', { authentication, refreshToken });
    if (endpoint !== 'token' || 'problem' in authentication || form.get('grant_type') !== 'refresh_token')
      return done();
    const grant = portal.grants.findByRefreshToken(authentication.client.id, refreshToken);
    if (grant === null) return done();
    if (grant.inFlight > 0) portal.audit.recordMisuse('overlapping', grant);
    grant.inFlight += 1;
    reply.raw.on('close', () => {
      grant.inFlight -= 1;
    });
    done();
  });
}

/** A token or revocation request of an authenticated client. */
export interface ClientRequest {
  readonly client: Client;
  readonly form: ReadonlyMap<string, string>;
  /** The claims of its refresh token; null if it has none or the emulator did not issue it. */
  readonly refreshToken: TokenClaims | null;
}

/** A token or revocation request, or the error response if it is no form or its client is not authenticated. */
export function readClientRequest(request: FastifyRequest): ClientRequest | { readonly problem: OAuthError } {
  const { portal, form, authorization, client } = requestContext(request);
  // Null if a parameter in the form is repeated.
  const credentials = request.getDecorator<TokenRequestCredentials | null>('tokenRequest');
  if (mediaType(request) !== FORM_MEDIA_TYPE) return { problem: invalidRequest(`the body must be ${FORM_MEDIA_TYPE}`) };
  if (form === null || credentials === null) return { problem: invalidRequest('a parameter is repeated') };
  const { authentication, refreshToken } = credentials;
  if ('problem' in authentication) {
    portal.audit.recordFailedAuthentication(client, authenticationMethod(authorization, form));
    return authentication;
  }
  return { client: authentication.client, form, refreshToken };
}

function authenticationMethod(
  header: string | undefined,
  form: ReadonlyMap<string, string>,
): ClientAuthenticationMethod {
  if (header !== undefined) return 'authorization header';
  return form.has('client_secret') ? 'form' : 'none';
}

/** An authenticated client, or the error response. */
type ClientAuthentication = { readonly client: Client } | { readonly problem: OAuthError };

/**
 * Client authentication at the token and revocation endpoints: `client_id` and `client_secret` in the form (docs/portal.md, 5), or HTTP
 * Basic (RFC 6749, 2.3.1), never both (2.3). It does not look at codes and tokens, so that a failed attempt uses up
 * none.
 * @param authorization the Authorization header, if any
 */
function authenticateClient(
  settings: EffectiveSettings,
  authorization: string | undefined,
  form: ReadonlyMap<string, string>,
): ClientAuthentication {
  const formId = form.get('client_id');
  const formSecret = form.get('client_secret');
  if (authorization === undefined) return verifyCredentials(settings, formId, formSecret, false);
  const basic = basicCredentials(authorization);
  if (formSecret !== undefined)
    return authenticationError(400, 'invalid_request', 'more than one method of client authentication');
  if (basic === null || settings.basic === 'refuse') {
    return authenticationError(401, 'invalid_client', 'this Authorization header is not accepted', true);
  }
  if (formId !== undefined && formId !== basic.id) {
    return authenticationError(400, 'invalid_request', 'client_id differs from the one in the Authorization header');
  }
  return verifyCredentials(settings, basic.id, basic.secret, true);
}

function verifyCredentials(
  settings: EffectiveSettings,
  id = '',
  secret = '',
  challenge: boolean,
): ClientAuthentication {
  const client = settings.clients.get(id);
  const isSecretCorrect = timingSafeEqualText(secret, client?.secret ?? settings.firstClient.secret);
  if (client !== undefined && isSecretCorrect) return { client };
  return authenticationError(401, 'invalid_client', 'client authentication failed', challenge);
}

function authenticationError(
  status: OAuthError['status'],
  error: OAuthError['error'],
  description: string,
  challenge = false,
): ClientAuthentication {
  return { problem: { status, error, description, challenge } };
}

/** An error response of the token or revocation endpoint (RFC 6749, 5.2; RFC 7009, 2.2.1). */
export interface OAuthError {
  readonly status: 400 | 401;
  readonly error: 'invalid_request' | 'invalid_client' | 'invalid_grant' | 'invalid_scope' | 'unsupported_grant_type';
  readonly description: string;
  /** Whether the client used the Authorization header, so that the response must name the scheme accepted there. */
  readonly challenge?: boolean;
}

export function invalidRequest(description: string): OAuthError {
  return { status: 400, error: 'invalid_request', description };
}

export function invalidGrant(description: string): OAuthError {
  return { status: 400, error: 'invalid_grant', description };
}

/** Sends an error response of the token or revocation endpoint. */
export function sendOAuthError(reply: FastifyReply, problem: OAuthError): FastifyReply {
  if (problem.challenge === true) reply.header('www-authenticate', 'Basic realm="portal", charset="UTF-8"');
  return reply.code(problem.status).send({ error: problem.error, error_description: problem.description });
}
