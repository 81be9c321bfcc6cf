/** Somebody else's OAuth 2.0 authorization server on a loopback port, with one registered client and one user. */
export interface OAuthServer {
  /** The issuer whose metadata the server publishes (RFC 8414 or OpenID Connect Discovery); null if it has none. */
  readonly issuer: string | null;
  readonly endpoints: OAuthEndpoints;
  /**
   * Authenticates by its secret, with HTTP Basic or in the form. Authlib does not decode the credentials of HTTP Basic
   * (RFC 6749, 2.3.1), so that a client that encodes the hyphens is refused.
   */
  readonly client: OAuthClient;
  /**
   * Logs the user in without a browser, and consents.
   * @param url an authorization request, which ends with the redirect, which is not requested; or the
   * `verification_uri_complete` of a device flow, which ends with the server's last page
   * @returns the URL where it ended
   */
  loginByScript(url: string): Promise<string>;
}

/** URLs; null if the server lacks the endpoint. */
interface OAuthEndpoints {
  readonly authorization: string;
  readonly token: string;
  readonly revocation: string | null;
  /** RFC 7662. */
  readonly introspection: string | null;
}

interface OAuthClient {
  readonly id: string;
  readonly secret: string;
}

export interface OAuthServerOptions {
  /** The redirect URIs of the client. */
  readonly redirectUris: readonly string[];
  /** How long access tokens are valid, in seconds. */
  readonly accessTokenTtl: number;
}

/** The client and the user of every server. */
export const CLIENT: OAuthClient = { id: 'latchkey-hub', secret: 'the-secret-of-the-hub-at-this-portal' };
export const USER = { name: 'resident', password: 'password-of-the-resident' };

/** What clients may ask for at servers with scopes of their own choice. */
export const APPLIANCE_SCOPES: readonly string[] = ['monitoring', 'control'];

/** Whether a login from this URL ends with a redirect to the client, as opposed to a device flow. */
export function endsWithRedirect(url: string): boolean {
  return new URL(url).searchParams.has('redirect_uri');
}
