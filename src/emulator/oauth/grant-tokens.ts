import type { EffectiveSettings } from '../settings/effective-settings.ts';
import type { BearerTokens, TokenClaims } from './bearer-tokens.ts';
import { accessTokenHash, SigningKey, signWithSecret, unsignedJwt } from './jwt.ts';

/** What tokens say of a grant. */
export interface GrantSubject {
  readonly clientId: string;
  /** The client's ID if no user has logged in. */
  readonly user: string;
  readonly scope: string | null;
  /** If `/oauth2/token` created it; left out otherwise. */
  readonly oauth2?: {
    /** The name of the issuer; null or left out for the default one. */
    readonly issuer?: string | null;
    /** The `nonce` of the authorization request (OpenID Connect Core, 3.1.2.1); left out if it had none. */
    readonly nonce?: string | undefined;
    /** The API that the access tokens are for (RFC 8707); left out for that of the base origin. */
    readonly resource?: string | undefined;
    /** When the user logged in, in milliseconds since 1970; left out if no user did, with `client_credentials`. */
    readonly loggedInAt?: number | undefined;
    /** The `sub` of who acts for the user, after a token exchange with an `actor_token` (RFC 8693, 4.1); left out otherwise. */
    readonly actor?: string | undefined;
  };
}

/** Times of a token, in seconds since 1970. */
interface TokenTimes {
  readonly iat: number;
  readonly exp: number;
}

/** What the tokens of grants are made with. */
export interface GrantTokensContext {
  readonly tokens: BearerTokens;
  readonly signingKey: SigningKey;
  /** The identifier of an issuer, by its name. */
  readonly issuer: (name: string | null | undefined) => string;
  /** The API that access tokens are for, if the client names none. */
  readonly api: () => string;
}

/** How every JWT begins: its header is a JSON object. */
const JWT_START = 'eyJ';

/** The tokens of a grant as its client gets them. @param lifetime of the access token, in seconds */
export function createTokens(
  context: GrantTokensContext,
  subject: GrantSubject,
  claims: TokenClaims,
  lifetime: number,
  settings: EffectiveSettings,
) {
  const grant = { ...subject, scope: claims.scope ?? subject.scope };
  const iat = Math.floor(claims.issuedAt / 1000);
  const times = { iat, exp: iat + Math.ceil(lifetime) };
  const accessToken = createAccessToken(context, grant, claims, times, settings);
  const isWanted = settings.idToken || grant.scope?.split(' ').includes('openid') === true;
  return {
    accessToken,
    idToken: isLogin(grant) && isWanted ? createIdToken(context, grant, accessToken, claims, times, settings) : null,
  };
}

/** The claims of an access token, even if it is expired or revoked; null if this emulator did not issue it. */
export function verifyAccessToken({ tokens, signingKey }: GrantTokensContext, token: string): TokenClaims | null {
  if (!token.startsWith(JWT_START)) return tokens.verify('access_token', token);
  return tokens.verify('jti', String(signingKey.verify('at+jwt', token)?.['jti']));
}

/** A JWT (RFC 9068, 2.2) has the claims of the opaque token in its `jti`, so that both are recognised alike. */
function createAccessToken(
  { tokens, signingKey, issuer, api }: GrantTokensContext,
  { oauth2, user, clientId, scope }: GrantSubject,
  claims: TokenClaims,
  times: TokenTimes,
  settings: EffectiveSettings,
): string {
  if (settings.accessTokenFormat === 'opaque' || oauth2 === undefined) return tokens.sign('access_token', claims);
  const jti = tokens.sign('jti', claims);
  const iss = issuer(oauth2.issuer);
  const aud = oauth2.resource ?? api();
  const own = { ...settings.clients.get(clientId)?.claims, ...settings.users.get(user)?.claims };
  return signingKey.sign('at+jwt', {
    ...own,
    iss,
    aud,
    sub: subjectOf(user, settings),
    client_id: clientId,
    ...times,
    jti,
    ...(scope !== null && { scope }),
    ...(claims.jkt !== undefined && { cnf: { jkt: claims.jkt } }),
    ...(oauth2.actor !== undefined && { act: { sub: oauth2.actor } }),
  });
}

function createIdToken(
  { signingKey, issuer }: GrantTokensContext,
  { clientId, user, scope, oauth2 }: GrantSubject,
  accessToken: string,
  { generation }: TokenClaims,
  times: TokenTimes,
  settings: EffectiveSettings,
): string {
  const iss = issuer(oauth2?.issuer);
  // The portal of docs/portal.md knows no scopes of OpenID Connect.
  const about = userClaims(user, oauth2 === undefined ? null : scope, settings);
  const claims = { iss, aud: clientId, ...times, ...about };
  // OpenID Connect Core, 10.1: its client can verify it.
  if (oauth2 === undefined) return signWithSecret(claims, settings.clients.get(clientId)?.secret ?? '');
  const all = {
    ...claims,
    azp: clientId,
    at_hash: accessTokenHash(accessToken),
    auth_time: Math.floor((oauth2.loggedInAt ?? 0) / 1000),
    // Not after a refresh (OpenID Connect Core, 12.2).
    ...(oauth2.nonce !== undefined && generation === 1 && { nonce: oauth2.nonce }),
  };
  switch (settings.idTokenError) {
    case 'unsigned':
      return unsignedJwt(all);
    case 'unknown-key':
      return new SigningKey(null).sign('JWT', all);
    case 'none':
      return signingKey.sign('JWT', all);
    default:
      return signingKey.sign('JWT', { ...all, ...WRONG_CLAIMS[settings.idTokenError] });
  }
}

/** What replaces the claims of an ID token, by the setting `idTokenError`. */
const WRONG_CLAIMS = {
  iss: { iss: 'https://another-issuer.invalid' },
  aud: { aud: 'another-client', azp: 'another-client' },
  exp: { iat: 1, exp: 2 },
  nonce: { nonce: 'another-nonce' },
} as const;

/** Whether a user has logged in for a grant, and not a client or another token. */
export function isLogin({ oauth2 }: GrantSubject): boolean {
  return oauth2 === undefined || oauth2.loggedInAt !== undefined;
}

/** Whether a text can name an API: an absolute URI without a fragment (RFC 8707, 2). */
export function isResource(text: string): boolean {
  return URL.canParse(text) && !text.includes('#');
}

/** The claims that need a scope (OpenID Connect Core, 5.4). */
const SCOPED_CLAIMS = {
  profile:
    'name family_name given_name middle_name nickname preferred_username profile picture website gender birthdate zoneinfo locale updated_at',
  email: 'email email_verified',
  address: 'address',
  phone: 'phone_number phone_number_verified',
};

/**
 * The claims about a user (OpenID Connect Core, 5.1), in ID tokens and at the userinfo endpoint.
 * @param scope the granted one; without `openid` it leaves nothing out
 */
export function userClaims(user: string, scope: string | null, settings: EffectiveSettings) {
  const own = settings.users.get(user)?.claims;
  const claims = { name: user, preferred_username: user, ...own, sub: subjectOf(user, settings) };
  const granted = scope?.split(' ') ?? [];
  if (!granted.includes('openid')) return claims;
  const missing = Object.entries(SCOPED_CLAIMS).filter(([name]) => !granted.includes(name));
  const hidden = missing.flatMap(([, names]) => names.split(' '));
  return { ...Object.fromEntries(Object.entries(claims).filter(([name]) => !hidden.includes(name))), sub: claims.sub };
}

/** The claim `sub` of a user: the one of the user's own claims, otherwise the name. That of a client is its ID. */
export function subjectOf(user: string, { users }: EffectiveSettings): string {
  return String(users.get(user)?.claims?.['sub'] ?? user);
}
