import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { FORM_MEDIA_TYPE } from '../../system/http/form.ts';
import type { TokenClaims } from '../oauth/bearer-tokens.ts';
import type { ClientAuthenticationMethod } from '../oauth/client-audit.ts';
import type { EmulatedPortal } from '../portal.ts';
import type { Client } from '../settings/client-registry.ts';
import { type Operation, unmetRequirement } from '../settings/requirements.ts';
import { authenticateClient, authenticateOAuth2Client, type ClientAuthentication } from './client-authentication.ts';
import { isProofRequired, type ProofResult, verifyProof } from './dpop.ts';
import type { Endpoint } from './logged-request.ts';
import { invalidRequest, type OAuthError } from './oauth-error.ts';
import { bodyText, mediaType, requestContext } from './request-context.ts';

/** The result of checking the secrets in a token or revocation request, independent of its grant type. */
interface TokenRequestCredentials {
  readonly authentication: ClientAuthentication;
  /** The claims of its refresh token; null if it has none or the emulator did not issue it. */
  readonly refreshToken: TokenClaims | null;
  /** The key that it proves (RFC 9449, 5), or null if it has no proof. */
  readonly proof: ProofResult;
}

/**
 * Makes {@link readClientRequest} available for all token, revocation and device authorization requests, and counts refreshes that begin
 * before another one of the same grant was answered. It uses up no code or token, but client assertions and proofs. So it
 * must be attached after the faults, which can keep a request from being processed.
 */
export function attachTokenRequestCredentials(app: FastifyInstance): void {
  app.decorateRequest('tokenRequest', null);
  app.addHook('preHandler', (request, reply, done) => {
    const { endpoint, oauth2, portal, url, authorization, form } = requestContext(request);
    if (!CLIENT_ENDPOINTS.includes(endpoint) || form === null) return done();
    const finish = (authentication: ClientAuthentication, proof: ProofResult) => {
      const token = form.get('refresh_token');
      const refreshToken = token === undefined ? null : portal.grants.verifyRefreshToken(token);
      request.setDecorator('tokenRequest', { authentication, refreshToken, proof });
      const isRefresh = endpoint === 'token' && form.get('grant_type') === 'refresh_token';
      if (isRefresh && 'client' in authentication) countOverlap(portal, reply, authentication.client, refreshToken);
      done();
    };
    const authentication = oauth2
      ? authenticateOAuth2Client(portal, url, authorization, form)
      : authenticateClient(portal.settings, authorization, form);
    const proof = oauth2 && (endpoint === 'token' || endpoint === 'par') ? verifyProof(request, reply, null) : null;
    if (authentication instanceof Promise || proof !== null)
      Promise.all([authentication, proof])
        .then((both) => finish(...both))
        .catch(done);
    else finish(authentication, proof);
  });
}

const CLIENT_ENDPOINTS: readonly (Endpoint | null)[] = ['par', 'token', 'revoke', 'introspect', 'device_authorization'];

/** Counts a refresh that begins before another one of its grant was answered. */
function countOverlap(
  portal: EmulatedPortal,
  reply: FastifyReply,
  client: Client,
  refreshToken: TokenClaims | null,
): void {
  const grant = portal.grants.findByRefreshToken(client.id, refreshToken);
  if (grant === null) return;
  if (grant.inFlight > 0) portal.audit.recordMisuse('overlapping', grant);
  grant.inFlight += 1;
  reply.raw.on('close', () => {
    grant.inFlight -= 1;
  });
}

/** A token or revocation request of an authenticated client. */
export interface ClientRequest {
  readonly client: Client;
  readonly form: ReadonlyMap<string, string>;
  /** The claims of its refresh token; null if it has none or the emulator did not issue it. */
  readonly refreshToken: TokenClaims | null;
  /** The thumbprint of the key that it proves, or null if it has no proof (RFC 9449, 5). */
  readonly jkt: string | null;
}

/** A token or revocation request, or the error response if it is no form or its client is not authenticated. */
export function readClientRequest(request: FastifyRequest): ClientRequest | { readonly problem: OAuthError } {
  const { endpoint, portal, oauth2, form, authorization, client } = requestContext(request);
  // Null if a parameter in the form is repeated.
  const credentials = request.getDecorator<TokenRequestCredentials | null>('tokenRequest');
  const isInQuery = oauth2 && portal.settings.parametersInQuery && bodyText(request) === '';
  if (mediaType(request) !== FORM_MEDIA_TYPE && !isInQuery)
    return { problem: invalidRequest(`the body must be ${FORM_MEDIA_TYPE}`) };
  if (form === null || credentials === null) return { problem: invalidRequest('a parameter is repeated') };
  const { authentication, refreshToken, proof } = credentials;
  if ('problem' in authentication) {
    portal.audit.recordFailedAuthentication(client, authenticationMethod(authorization, form));
    return authentication;
  }
  if (proof !== null && 'refused' in proof)
    return { problem: { status: 400, error: proof.refused, description: proof.description } };
  if (proof === null && endpoint === 'token' && oauth2 && isProofRequired(portal.settings))
    return { problem: { status: 400, error: 'invalid_dpop_proof', description: 'the header DPoP is missing' } };
  return { client: authentication.client, form, refreshToken, jkt: proof?.jkt ?? null };
}

/** What a request lacks that this cloud needs for the operation, as a phrase, or null. */
export function unmetOfRequest(
  request: FastifyRequest,
  operation: Operation,
  { client, form }: { readonly client: Pick<Client, 'id'>; readonly form: ReadonlyMap<string, string> },
): string | null {
  const { requiredParameters, requiredHeaders } = requestContext(request).portal.settings;
  const header = (name: string) => request.headers[name.toLowerCase()]?.toString();
  return (
    unmetRequirement(requiredParameters, operation, client.id, (name) => form.get(name)) ??
    unmetRequirement(requiredHeaders, operation, client.id, header)
  );
}

function authenticationMethod(
  header: string | undefined,
  form: ReadonlyMap<string, string>,
): ClientAuthenticationMethod {
  if (header !== undefined) return 'authorization header';
  if (form.has('client_assertion')) return 'assertion';
  return form.has('client_secret') ? 'form' : 'none';
}
