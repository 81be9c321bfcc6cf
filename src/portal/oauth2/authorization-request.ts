import { calculatePKCECodeChallenge, generateRandomCodeVerifier } from 'oauth4webapi';
import type { RedirectLink } from '../../core/portals/login-link.ts';
import { Secret } from '../../core/secret.ts';
import type { OAuth2Settings } from './settings.ts';

/** Bytes of a `state`: 128 bits. */
const STATE_BYTES = 16;

/** What an authorization request is made from. */
export interface AuthorizationRequestInput {
  readonly endpoint: string;
  readonly settings: Pick<OAuth2Settings, 'clientId' | 'pkce' | 'scopeSeparator' | 'authorizationParams'>;
  readonly redirectUri: string;
  /** The hub's own callback, for a relay; null while the hub has no address. */
  readonly callbackAddress: string | null;
  /** Separated by spaces; null for none. */
  readonly scope: string | null;
  readonly issuer: string | null;
  readonly requiresIssuer: boolean;
  /** Random bytes, base64url-encoded. */
  readonly randomToken: (bytes: number) => string;
}

/** The link of an authorization request (RFC 6749, 4.1.1; RFC 7636, 4.3). Sends nothing. */
export async function createAuthorizationLink(input: AuthorizationRequestInput): Promise<RedirectLink> {
  const { settings, redirectUri, issuer, requiresIssuer } = input;
  const verifier = settings.pkce ? generateRandomCodeVerifier() : null;
  const state = createState(input);
  const url = new URL(input.endpoint);
  const parameters = {
    response_type: 'code',
    client_id: settings.clientId,
    redirect_uri: redirectUri,
    ...(input.scope !== null && { scope: formatScope(input.scope, settings) }),
    state,
    ...(verifier !== null && {
      code_challenge: await calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    }),
    ...settings.authorizationParams,
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return {
    kind: 'redirect',
    authorizeUrl: url.href,
    redirect: redirectUri,
    state,
    verifier: verifier === null ? null : new Secret(verifier),
    issuer,
    requiresIssuer,
  };
}

/** A scope as this portal writes it. */
export function formatScope(scope: string, { scopeSeparator }: Pick<OAuth2Settings, 'scopeSeparator'>): string {
  return scope.split(' ').join(scopeSeparator);
}

/**
 * Random, and for a public redirect URI also where the relay there finds the hub (docs/relay.md): the relay keeps
 * nothing, so the state has to name the address.
 */
function createState({ redirectUri, callbackAddress, randomToken }: AuthorizationRequestInput): string {
  const random = randomToken(STATE_BYTES);
  const isRelayed = redirectUri.startsWith('https:') && redirectUri !== callbackAddress;
  if (!isRelayed || callbackAddress === null) return random;
  return `${random}.${Buffer.from(callbackAddress).toString('base64url')}`;
}
