import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { FORM_MEDIA_TYPE } from '../../system/http/form.ts';
import type { TokenClaims } from '../oauth/bearer-tokens.ts';
import type { ClientAuthenticationMethod } from '../oauth/client-audit.ts';
import type { EmulatedPortal } from '../portal.ts';
import type { Client } from '../settings/client-registry.ts';
import { type Operation, requirementsOf, unmetRequirement } from '../settings/requirements.ts';
import { authenticateClient, authenticateOAuth2Client, type ClientAuthentication } from './client-authentication.ts';
import type { Endpoint } from './logged-request.ts';
import { invalidRequest, type OAuthError } from './oauth-error.ts';
import { bodyText, mediaType, requestContext } from './request-context.ts';

/** The result of checking the secrets in a token or revocation request, independent of its grant type. */
interface TokenRequestCredentials {
  readonly authentication: ClientAuthentication;
  /** The claims of its refresh token; null if it has none or the emulator did not issue it. */
  readonly refreshToken: TokenClaims | null;
}

/**
 * Makes {@link readClientRequest} available for all token, revocation and device authorization requests, and counts refreshes that begin
 * before another one of the same grant was answered. It uses up no code or token.
 */
export function attachTokenRequestCredentials(app: FastifyInstance): void {
  app.decorateRequest('tokenRequest', null);
  app.addHook('preHandler', (request, reply, done) => {
    const { endpoint, oauth2, portal, url, authorization, form } = requestContext(request);
    if (!CLIENT_ENDPOINTS.includes(endpoint) || form === null) return done();
    const finish = (authentication: ClientAuthentication) => {
      const token = form.get('refresh_token');
      const refreshToken = token === undefined ? null : portal.grants.verifyRefreshToken(token);
      request.setDecorator('tokenRequest', { authentication, refreshToken });
      const isRefresh = endpoint === 'token' && form.get('grant_type') === 'refresh_token';
      if (isRefresh && 'client' in authentication) countOverlap(portal, reply, authentication.client, refreshToken);
      done();
    };
    const authentication = oauth2
      ? authenticateOAuth2Client(portal, url, authorization, form)
      : authenticateClient(portal.settings, authorization, form);
    if (authentication instanceof Promise) authentication.then(finish).catch(done);
    else finish(authentication);
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
}

/** A token or revocation request, or the error response if it is no form or its client is not authenticated. */
export function readClientRequest(request: FastifyRequest): ClientRequest | { readonly problem: OAuthError } {
  const { portal, oauth2, form, authorization, client } = requestContext(request);
  // Null if a parameter in the form is repeated.
  const credentials = request.getDecorator<TokenRequestCredentials | null>('tokenRequest');
  const isInQuery = oauth2 && portal.settings.parametersInQuery && bodyText(request) === '';
  if (mediaType(request) !== FORM_MEDIA_TYPE && !isInQuery)
    return { problem: invalidRequest(`the body must be ${FORM_MEDIA_TYPE}`) };
  if (form === null || credentials === null) return { problem: invalidRequest('a parameter is repeated') };
  const { authentication, refreshToken } = credentials;
  if ('problem' in authentication) {
    portal.audit.recordFailedAuthentication(client, authenticationMethod(authorization, form));
    return authentication;
  }
  return { client: authentication.client, form, refreshToken };
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
    unmetRequirement(requirementsOf(requiredParameters, operation, client.id), (name) => form.get(name)) ??
    unmetRequirement(requirementsOf(requiredHeaders, operation, client.id), header)
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
