import type { FastifyInstance } from 'fastify';
import { FORM } from '../../system/http/form.ts';
import type { AuthenticationWay } from '../audit/client-audit.ts';
import { received } from '../http/received.ts';
import { bearerToken, mediaType } from '../http/request-form.ts';
import { serve } from '../http/routes.ts';
import { type OAuthError, sendOAuthError, tokenRequest } from '../http/token-request.ts';
import { isScope } from '../oauth/authorization-request.ts';
import type { TokenClaims } from '../oauth/bearer-tokens.ts';
import type { TokenResponse } from '../oauth/grants.ts';
import type { Portal } from '../portal.ts';
import type { Client } from '../settings/effective-settings.ts';

/**
 * The token endpoint (specification, endpoints 4 and 5; RFC 6749, 4.1.3 and 6). The client is authenticated before any
 * code or refresh token is touched. `redirect_uri`, `access_type` and, on refresh, `scope` are accepted and ignored,
 * but a `redirect_uri` that contradicts the one of an ordinary flow is refused.
 */
export function serveToken(app: FastifyInstance): void {
  serve(app, '/sso/token', 'token', {
    POST(request, reply) {
      const { portal, form, authorization, client } = received(request);
      const asked = tokenRequest(request);
      if (mediaType(request) !== FORM) return sendOAuthError(reply, invalid(`the body must be ${FORM}`));
      if (form === null || asked === null) return sendOAuthError(reply, invalid('a parameter is repeated'));
      if ('problem' in asked.authentication) {
        portal.audit.authenticationFailed(client, way(authorization, form));
        return sendOAuthError(reply, asked.authentication.problem);
      }
      const outcome = tokens(portal, asked.authentication.client, form, asked.refreshToken);
      return 'error' in outcome ? sendOAuthError(reply, outcome) : reply.send(outcome);
    },
  });
}

function tokens(
  portal: Portal,
  client: Client,
  form: ReadonlyMap<string, string>,
  refreshToken: TokenClaims | null,
): TokenResponse | OAuthError {
  const grantType = form.get('grant_type');
  if (grantType === undefined) return invalid('grant_type is missing');
  if (grantType === 'authorization_code') return exchange(portal, client, form);
  if (grantType === 'refresh_token') {
    if (!form.has('refresh_token')) return invalid('refresh_token is missing');
    const outcome = portal.grants.refresh(client.id, refreshToken, portal.settings);
    return 'refused' in outcome ? invalidGrant(outcome.refused) : outcome;
  }
  return { status: 400, error: 'unsupported_grant_type', description: 'use authorization_code or refresh_token' };
}

/** A code serves once; its second use also takes back what the first one gave (RFC 6749, 4.1.2). */
function exchange(portal: Portal, client: Client, form: ReadonlyMap<string, string>): TokenResponse | OAuthError {
  const value = form.get('code');
  if (value === undefined) return invalid('code is missing');
  const scope = form.get('scope');
  if (scope !== undefined && !isScope(scope)) {
    return { status: 400, error: 'invalid_scope', description: 'scope must be names with one space between them' };
  }
  const code = portal.codes.find(value);
  if (code === undefined || code.clientId !== client.id) return invalidGrant('unknown code');
  if (code.grantId !== null) {
    portal.audit.count('codeRepeated', { clientId: client.id, id: code.grantId });
    const grant = portal.grants.find(code.grantId);
    if (grant !== undefined) portal.grants.revoke(grant, 'grant');
    return invalidGrant('the code was used before');
  }
  if (!portal.codes.lives(code, portal.settings.codeLifetime)) return invalidGrant('the code has expired');
  if (code.redirectUri !== null && (form.get('redirect_uri') ?? code.redirectUri) !== code.redirectUri) {
    return invalidGrant('redirect_uri differs from the one of the authorization request');
  }
  const grant = portal.grants.create(client.id, code.user, scope ?? code.scope);
  portal.codes.use(code, grant.id);
  if (code.stateId !== null) portal.runs.finish(code.stateId);
  return portal.grants.issueTokens(grant, portal.settings);
}

function way(header: string | undefined, form: ReadonlyMap<string, string>): AuthenticationWay {
  if (header !== undefined) return 'authorization header';
  return form.has('client_secret') ? 'form' : 'none';
}

function invalid(description: string): OAuthError {
  return { status: 400, error: 'invalid_request', description };
}

function invalidGrant(description: string): OAuthError {
  return { status: 400, error: 'invalid_grant', description };
}

/**
 * Stands in for the cloud API: 200 `{user, scope}` for a good bearer token in the Authorization header; else, by RFC 6750,
 * section 3, 401 with a challenge, which names an error only where a token was sent, or 400 for a damaged header.
 */
export function serveWhoami(app: FastifyInstance): void {
  serve(app, '/api/whoami', 'whoami', {
    async GET(request, reply) {
      const { portal, authorization: header = '' } = received(request);
      const token = bearerToken(header);
      const grant = token === null ? null : portal.grants.authenticate(token);
      if (grant !== null) return reply.send({ user: grant.user, scope: grant.scope });
      const challenge = (error: string) => reply.header('www-authenticate', `Bearer realm="portal"${error}`);
      if (token !== null) return challenge(', error="invalid_token"').code(401).send({ error: 'invalid_token' });
      if (!/^bearer\b/i.test(header)) return challenge('').code(401).send({ error: 'unauthorized' });
      return challenge(', error="invalid_request"').code(400).send({ error: 'invalid_request' });
    },
  });
}
