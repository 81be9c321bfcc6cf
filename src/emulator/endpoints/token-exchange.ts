import { invalidRequest, type OAuthError } from '../http/oauth-error.ts';
import type { ClientRequest } from '../http/token-request.ts';
import { subjectOf } from '../oauth/grant-tokens.ts';
import type { TokenResponseBody } from '../oauth/issued-grants.ts';
import { isIssuedBy, verifyIdToken } from '../oauth/issuers.ts';
import { readNarrowerScope, readRequestedScope } from '../oauth/oauth2-authorization-request.ts';
import type { EmulatedPortal } from '../portal.ts';

/** RFC 8693, 3. */
const TOKEN_TYPES = 'urn:ietf:params:oauth:token-type:';

/** What a token stands for that a client wants to exchange. */
interface Subject {
  readonly user: string;
  /** Null of an ID token, which has none. */
  readonly scope: string | null;
}

/** RFC 8693, 2.2.1. */
interface ExchangedTokens extends TokenResponseBody {
  readonly issued_token_type: string;
}

/**
 * Exchanges an access token or ID token of this server for an access token of the client (RFC 8693): for the same user,
 * with the same scope or less of it, for another API, and with an actor. There is no refresh token.
 */
export function exchangeToken(
  portal: EmulatedPortal,
  { client, form, jkt }: ClientRequest,
): OAuthError | { readonly tokens: ExchangedTokens; readonly withRefreshToken: false; readonly user: string } {
  const issued = form.get('requested_token_type') ?? `${TOKEN_TYPES}access_token`;
  if (issued !== `${TOKEN_TYPES}access_token`)
    return invalidRequest('requested_token_type must be that of access tokens');
  const subject = readToken(portal, form, 'subject');
  if (subject === null)
    return invalidRequest('subject_token and its type must be those of a valid token of this server');
  const isDelegation = form.has('actor_token') || form.has('actor_token_type');
  const actor = isDelegation ? readToken(portal, form, 'actor') : undefined;
  if (actor === null) return invalidRequest('actor_token and its type must be those of a valid token of this server');
  const sent = form.get('scope');
  const requested =
    subject.scope === null
      ? readRequestedScope(sent, portal.settings)
      : readNarrowerScope(sent, subject.scope, portal.settings);
  if ('refused' in requested) return { status: 400, error: 'invalid_scope', description: requested.refused };
  const grant = portal.grants.create(client.id, subject.user, requested.scope, {
    issuer: portal.issuerName,
    resource: form.get('resource') ?? form.get('audience'),
    actor: actor && subjectOf(actor.user, portal.settings),
  });
  const tokens = portal.grants.issueTokens(grant, portal.settings, jkt);
  return { tokens: { ...tokens, issued_token_type: issued }, withRefreshToken: false, user: subject.user };
}

/** What `subject_token` or `actor_token` stands for, or null if it is not valid. */
function readToken(
  portal: EmulatedPortal,
  form: ReadonlyMap<string, string>,
  role: 'subject' | 'actor',
): Subject | null {
  const token = form.get(`${role}_token`) ?? '';
  switch (form.get(`${role}_token_type`)) {
    case `${TOKEN_TYPES}access_token`:
    case `${TOKEN_TYPES}jwt`:
      return ownGrant(portal, token);
    case `${TOKEN_TYPES}id_token`: {
      const found = verifyIdToken(portal, token);
      return found !== null && found.expiresAt > portal.now() ? { user: found.user, scope: null } : null;
    }
    default:
      return null;
  }
}

/** What a valid access token of the issuer of the request stands for, or null. */
function ownGrant(portal: EmulatedPortal, token: string): Subject | null {
  const found = portal.grants.inspectAccessToken(token, portal.settings);
  return found !== null && isIssuedBy(portal, found.grant) ? { user: found.grant.user, scope: found.scope } : null;
}
