import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { authenticateBearer } from '../http/bearer-authentication.ts';
import { isProofRequired } from '../http/dpop.ts';
import { invalidGrant, invalidRequest, type OAuthError, sendOAuthError } from '../http/oauth-error.ts';
import { requestContext } from '../http/request-context.ts';
import { addOAuth2Route, addRoute } from '../http/routes.ts';
import { type ClientRequest, readClientRequest, unmetOfRequest } from '../http/token-request.ts';
import type { AuthorizationCode } from '../oauth/authorization-codes.ts';
import { redirectProblem } from '../oauth/authorization-request.ts';
import type { IssuedGrant, TokenResponseBody } from '../oauth/issued-grants.ts';
import { isIssuedBy } from '../oauth/issuers.ts';
import { type EmulatedPortal, issuerUrl } from '../portal.ts';
import type { Client } from '../settings/client-registry.ts';
import { SCOPE } from '../settings/validation.ts';

/**
 * Serves the token endpoint (docs/portal.md, 5 and 6; RFC 6749, 4.1.3 and 6). It authenticates the client before it
 * uses a code or refresh token. It ignores `access_type` and, on refresh, `scope`. It also ignores `redirect_uri`, but
 * refuses one that differs from that of the authorization request if the code is from an ordinary flow.
 */
export function serveToken(app: FastifyInstance): void {
  addRoute(app, '/sso/token', 'token', {
    async POST(request, reply) {
      const received = await readClientRequest(request, reply);
      if ('problem' in received) return sendOAuthError(reply, received.problem);
      const { portal } = requestContext(request);
      const outcome = handleTokenRequest(portal, received);
      if ('error' in outcome) return sendOAuthError(reply, outcome);
      portal.issuedSecrets.recordTokens(outcome);
      return reply.send(outcome);
    },
  });
}

function handleTokenRequest(
  portal: EmulatedPortal,
  { client, form, refreshToken }: ClientRequest,
): TokenResponseBody | OAuthError {
  const grantType = form.get('grant_type');
  if (grantType === undefined) return invalidRequest('grant_type is missing');
  if (grantType === 'authorization_code') return exchangeCode(portal, client, form);
  if (grantType === 'refresh_token') {
    if (!form.has('refresh_token')) return invalidRequest('refresh_token is missing');
    const grant = portal.grants.findByRefreshToken(client.id, refreshToken);
    if (refreshToken === null || grant === null || !isIssuedBy(portal, grant))
      return invalidGrant(portal.grants.explainUnknownRefreshToken(form.get('refresh_token')));
    const outcome = portal.grants.refresh(grant, refreshToken, portal.settings);
    return 'refused' in outcome ? invalidGrant(outcome.refused) : outcome;
  }
  return { status: 400, error: 'unsupported_grant_type', description: 'use authorization_code or refresh_token' };
}

function exchangeCode(
  portal: EmulatedPortal,
  client: Client,
  form: ReadonlyMap<string, string>,
): TokenResponseBody | OAuthError {
  const scope = form.get('scope');
  if (scope !== undefined && !SCOPE.test(scope)) {
    return { status: 400, error: 'invalid_scope', description: 'scope must be names with one space between them' };
  }
  const code = findUnusedCode(portal, client, form.get('code'));
  if ('error' in code) return code;
  if (code.oauth2 !== undefined) return invalidGrant('unknown code');
  if (code.redirectUri !== null && (form.get('redirect_uri') ?? code.redirectUri) !== code.redirectUri) {
    return invalidGrant(redirectProblem(form.get('redirect_uri'), code.redirectUri));
  }
  const grant = portal.grants.create(client.id, code.user, scope ?? code.scope);
  code.grantId = grant.id;
  const flow = portal.helperFlows.find(code.stateId ?? '');
  if (flow !== undefined) flow.done = true;
  return portal.grants.issueTokens(grant, portal.settings);
}

/**
 * The code of a token request, if this client can exchange it. A code is valid once; its second use also revokes the grant
 * of the first one (RFC 6749, 4.1.2).
 */
export function findUnusedCode(
  portal: EmulatedPortal,
  client: Client,
  value: string | undefined,
): AuthorizationCode | OAuthError {
  if (value === undefined) return invalidRequest('code is missing');
  const code = portal.codes.find(value);
  if (code === undefined || code.clientId !== client.id || !isIssuedBy(portal, code))
    return invalidGrant('unknown code');
  if (code.grantId !== null) {
    portal.audit.recordMisuse('codeRepeated', { clientId: client.id, id: code.grantId });
    const grant = portal.grants.find(code.grantId);
    if (grant !== undefined) portal.grants.revoke(grant, 'grant');
    return invalidGrant('the code was used before');
  }
  return portal.codes.isUnexpired(code, portal.settings.codeLifetime) ? code : invalidGrant('the code has expired');
}

/** The well-known path of the metadata of a protected resource (RFC 9728, 3). */
const RESOURCE_METADATA = '/.well-known/oauth-protected-resource';

/** Serves the metadata of the stand-in for the cloud API, for the whole origin and for its path (RFC 9728, 3.1). */
export function serveResourceMetadata(app: FastifyInstance): void {
  for (const path of ['', '/api/whoami']) {
    addOAuth2Route(app, `${RESOURCE_METADATA}${path}`, 'discovery', {
      async GET(request, reply) {
        const { origins, settings } = requestContext(request).portal;
        const resource = `${origins().base}${path}`;
        const servers = [null, ...settings.issuers].map((name) => issuerUrl(origins(), name));
        return reply.send({
          resource,
          authorization_servers: servers,
          bearer_methods_supported: ['header'],
          dpop_bound_access_tokens_required: isProofRequired(settings),
        });
      },
    });
  }
}

/** A stand-in for the cloud API: 200 `{user, scope}` for a valid bearer token in the Authorization header. */
export function serveWhoami(app: FastifyInstance): void {
  addRoute(app, '/api/whoami', 'whoami', {
    async GET(request, reply) {
      const { base } = requestContext(request).portal.origins();
      const found = await authenticateBearer(request, reply, `${base}${RESOURCE_METADATA}/api/whoami`);
      if (found === null) return reply;
      const { grant, scope, token } = found;
      const { portal, query } = requestContext(request);
      const form = query ?? new Map<string, string>();
      if (unmetOfRequest(request, 'api', { client: { id: grant.clientId }, form }) !== null) {
        return reply.code(400).send({ error: 'invalid_request' });
      }
      if (portal.settings.graceEndsOnUse) portal.grants.recordUse(token);
      return reply.send({ user: grant.user, scope });
    },
  });
}

/**
 * Serves the revocation endpoint (RFC 7009), which a portal may have (docs/portal.md). Client authentication is that of
 * the token endpoint. It ignores `token_type_hint`, because it recognises both kinds of tokens without it.
 */
export function serveRevocation(app: FastifyInstance): void {
  addRoute(app, '/oauth2/revoke', 'revoke', { POST: revoke });
}

/** Serves the revocation endpoint of the generic OAuth 2.0 server, with the client authentication of `/oauth2/token`. */
export function serveOAuth2Revocation(app: FastifyInstance): void {
  addOAuth2Route(app, '/oauth2/revoke', 'revoke', { POST: revoke });
}

async function revoke(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const received = await readClientRequest(request, reply);
  if ('problem' in received) return sendOAuthError(reply, received.problem);
  const unmet = requestContext(request).oauth2 ? unmetOfRequest(request, 'revoke', received) : null;
  if (unmet !== null) return sendOAuthError(reply, invalidRequest(unmet));
  const token = received.form.get('token');
  if (token === undefined) return sendOAuthError(reply, invalidRequest('token is missing'));
  const { oauth2, portal } = requestContext(request);
  const isOwn = (grant: IssuedGrant) => isIssuedBy(portal, grant);
  if (!portal.grants.revokeToken(received.client.id, token, isOwn))
    return sendOAuthError(reply, invalidGrant('the token was issued to another client'));
  // RFC 7009, 2.2: clients ignore the body, but some libraries want JSON.
  return oauth2 ? reply.send({}) : reply.send();
}
