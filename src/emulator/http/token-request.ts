import type { FastifyReply, FastifyRequest } from 'fastify';
import { FORM_MEDIA_TYPE } from '../../system/http/form.ts';
import type { TokenClaims } from '../oauth/bearer-tokens.ts';
import type { ClientAuthenticationMethod } from '../oauth/client-audit.ts';
import type { EmulatedPortal } from '../portal.ts';
import type { Client } from '../settings/client-registry.ts';
import { type Operation, unmetRequirement } from '../settings/requirements.ts';
import { authenticateClient, authenticateOAuth2Client } from './client-authentication.ts';
import { isProofRequired, verifyProof } from './dpop.ts';
import { invalidRequest, type OAuthError } from './oauth-error.ts';
import { bodyText, mediaType, requestContext } from './request-context.ts';

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

/** A request of an authenticated client. */
export interface ClientRequest {
  readonly client: Client;
  readonly form: ReadonlyMap<string, string>;
  /** The claims of its refresh token; null if it has none or the emulator did not issue it. */
  readonly refreshToken: TokenClaims | null;
  /** The thumbprint of the key that it proves, or null if it has no proof (RFC 9449, 5). */
  readonly jkt: string | null;
}

/**
 * Reads a request of a client and authenticates it, before any code or token is used up. Client assertions and proofs
 * are.
 * @returns the error response if the request is no form or its client is not authenticated
 */
export async function readClientRequest(
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<ClientRequest | { readonly problem: OAuthError }> {
  const { endpoint, portal, oauth2, url, form, authorization, client: named } = requestContext(request);
  const isInQuery = oauth2 && portal.settings.parametersInQuery && bodyText(request) === '';
  if (mediaType(request) !== FORM_MEDIA_TYPE && !isInQuery)
    return { problem: invalidRequest(`the body must be ${FORM_MEDIA_TYPE}`) };
  if (form === null) return { problem: invalidRequest('a parameter is repeated') };
  const takesProof = oauth2 && (endpoint === 'token' || endpoint === 'par');
  const authentication = oauth2
    ? await authenticateOAuth2Client(portal, url, authorization, form)
    : authenticateClient(portal.settings, authorization, form);
  const proof = takesProof ? await verifyProof(request, reply, null) : null;
  if ('problem' in authentication) {
    portal.audit.recordFailedAuthentication(named, authenticationMethod(authorization, form), authentication.problem);
    return authentication;
  }
  const { client } = authentication;
  const refreshToken = portal.grants.verifyRefreshToken(form.get('refresh_token') ?? '');
  const isRefresh = endpoint === 'token' && form.get('grant_type') === 'refresh_token';
  if (isRefresh) countOverlap(portal, reply, client, refreshToken);
  if (proof !== null && 'refused' in proof)
    return { problem: { status: 400, error: proof.refused, description: proof.description } };
  if (proof === null && endpoint === 'token' && oauth2 && isProofRequired(portal.settings))
    return { problem: { status: 400, error: 'invalid_dpop_proof', description: 'the header DPoP is missing' } };
  return { client, form, refreshToken, jkt: proof?.jkt ?? null };
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
