import { calculatePKCECodeChallenge, generateRandomCodeVerifier } from 'oauth4webapi';
import * as v from 'valibot';
import type { Instant } from '../../core/clock.ts';
import type { DeviceLink, RedirectLink } from '../../core/portals/login-link.ts';
import { Secret } from '../../core/secret.ts';
import { isLoopbackHost } from '../../system/addresses.ts';
import { parseBody } from '../token-response.ts';
import type { OAuth2Settings } from './settings.ts';

/** The interval of polls if the response names none, in seconds (RFC 8628, 3.2). */
const DEFAULT_INTERVAL = 5;
/** The longest interval that is kept, in seconds: a person waits for the result. */
const MAX_INTERVAL = 60;
/** The shortest and the longest lifetime of a device code that is kept, in seconds. */
const [MIN_LIFETIME, MAX_LIFETIME] = [30, 86_400];

const seconds = v.pipe(
  v.union([v.number(), v.pipe(v.string(), v.regex(/^\d{1,6}$/), v.transform(Number))]),
  v.finite(),
  v.minValue(0),
);
const loginAddress = v.pipe(v.string(), v.maxLength(2048), v.check(isLoginAddress));
/** Shown to a person who types it: no line breaks and no invisible characters. */
const userCode = v.pipe(v.string(), v.regex(/^[^\p{C}\p{Zl}\p{Zp}]{1,64}$/u));

/** RFC 8628, 3.2. `verification_url` is the name of a draft that is still in use. */
const deviceResponse = v.object({
  device_code: v.pipe(v.string(), v.regex(/^[\x20-\x7e]{1,4096}$/)),
  user_code: userCode,
  verification_uri: v.exactOptional(loginAddress),
  verification_url: v.exactOptional(loginAddress),
  verification_uri_complete: v.exactOptional(v.fallback(v.nullable(loginAddress), null)),
  expires_in: v.exactOptional(v.fallback(v.nullable(seconds), null)),
  interval: v.exactOptional(v.fallback(v.nullable(seconds), null)),
});

/**
 * The login of a device authorization response; null if it is invalid.
 * @param verifier the PKCE code verifier; null without PKCE
 * @param begun when the request was sent
 */
export function parseDeviceAuthorization(body: string, verifier: Secret | null, begun: Instant): DeviceLink | null {
  const parsed = parseBody(deviceResponse, body);
  const address = parsed?.verification_uri ?? parsed?.verification_url;
  if (parsed === null || address === undefined) return null;
  const complete = parsed.verification_uri_complete ?? null;
  const lifetime = Math.min(Math.max(parsed.expires_in ?? MAX_LIFETIME, MIN_LIFETIME), MAX_LIFETIME);
  return {
    kind: 'device',
    authorizeUrl: complete ?? address,
    redirect: null,
    userCode: parsed.user_code,
    containsUserCode: complete !== null,
    deviceCode: new Secret(parsed.device_code),
    verifier,
    interval: 1000 * Math.min(parsed.interval ?? DEFAULT_INTERVAL, MAX_INTERVAL),
    begun,
    lifetime: 1000 * lifetime,
  };
}

/** A person opens it: it may be on any host, but not on a page that anybody on the way could replace. */
function isLoginAddress(address: string): boolean {
  const url = URL.parse(address);
  if (url === null || url.username !== '' || url.password !== '') return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopbackHost(url.hostname));
}

/** Bytes of a `state`: 128 bits. */
const STATE_BYTES = 16;

/** What an authorization request is made from. */
interface AuthorizationRequestInput {
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
