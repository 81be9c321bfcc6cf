import { type EmulatedPortal, issuerUrl } from '../portal.ts';
import { type GrantSubject, subjectOf } from './grant-tokens.ts';

/** RFC 8414, 3.1: its path comes before that of the issuer. */
const METADATA = /^(\/\.well-known\/(?:oauth-authorization-server|openid-configuration))\/([^/?]+)(\?.*)?$/;
/** The endpoints of an issuer, and its metadata as OpenID Connect Discovery, 4 names it. */
const BELOW = /^\/([^/?]+)(\/(?:oauth2|\.well-known)\/.*)$/;

/**
 * The issuer that an address belongs to, and the address of the same endpoint of the default issuer.
 * @param url path and query
 * @param issuers the names of the others
 * @returns a null issuer for the default one
 */
export function splitIssuer(
  url: string,
  issuers: readonly string[],
): { readonly issuer: string | null; readonly url: string } {
  const [, metadata = '', last = '', query = ''] = METADATA.exec(url) ?? [];
  if (issuers.includes(last)) return { issuer: last, url: `${metadata}${query}` };
  const [, first = '', rest = ''] = BELOW.exec(url) ?? [];
  return issuers.includes(first) ? { issuer: first, url: rest } : { issuer: null, url };
}

/** The portal as one of its issuers, with its current settings. @param name null for the default one */
export function forIssuer(portal: EmulatedPortal, name: string | null): EmulatedPortal {
  return { ...portal, issuerName: name, issuer: () => issuerUrl(portal.origins(), name) };
}

/**
 * A signed access token (RFC 9068) with these claims, without a login and without a grant: for APIs that verify it with
 * the JWK Set. The portal itself does not know it.
 * @param claims replace those that every token has
 */
export function issueToken(portal: EmulatedPortal, claims: Readonly<Record<string, unknown>>): string {
  const { settings, signingKey, issuedSecrets } = portal;
  const [user = ''] = settings.users.keys();
  const iat = Math.floor(portal.now() / 1000);
  const usual = {
    sub: subjectOf(user, settings),
    client_id: settings.firstClient.id,
    iat,
    exp: iat + settings.tokenLifetime,
  };
  const token = signingKey.sign('at+jwt', { iss: portal.issuer(), aud: portal.origins().base, ...usual, ...claims });
  portal.save();
  return issuedSecrets.record('access_token', token);
}

/** Whether the issuer of a request has issued a grant. */
export function isIssuedBy({ issuerName }: EmulatedPortal, { oauth2 }: Pick<GrantSubject, 'oauth2'>): boolean {
  return (oauth2?.issuer ?? null) === issuerName;
}

/**
 * What an ID token says that the issuer of a request has signed for one of the users, or null. It does not check expiry.
 * @returns the user's name, the client's ID, and the expiry in milliseconds since 1970
 */
export function verifyIdToken({ signingKey, issuer, settings }: EmulatedPortal, token: string) {
  const claims = signingKey.verify('JWT', token);
  if (claims?.['iss'] !== issuer()) return null;
  const user = [...settings.users.keys()].find((name) => subjectOf(name, settings) === claims['sub']);
  return user === undefined ? null : { user, clientId: claims['aud'], expiresAt: 1000 * Number(claims['exp']) };
}
