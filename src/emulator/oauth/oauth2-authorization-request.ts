import { sha256 } from '../../system/secret-hash.ts';
import type { EmulatedPortal } from '../portal.ts';
import { type Client, isRedirectUri } from '../settings/client-registry.ts';
import { unmetRequirement } from '../settings/requirements.ts';
import type { Settings } from '../settings/settings.ts';
import { SCOPE } from '../settings/validation.ts';
import {
  type AuthorizationProblem,
  type AuthorizationRequest,
  type ErrorRedirect,
  encodeParameter,
  type LoginDemands,
  type OAuthErrorName,
  REGISTER_REDIRECT_URI,
  REPEATED,
  rawParameter,
  unknownClient,
  unknownRedirect,
  withQueryParameters,
} from './authorization-request.ts';
import { isResource } from './grant-tokens.ts';
import { verifyIdToken } from './issuers.ts';
import { REQUEST_URI_START } from './pushed-requests.ts';

/** An error that goes to the redirect_uri of a request (RFC 6749, 4.1.2.1; RFC 8707, 2; OpenID Connect Core, 3.1.2.6). */
interface AuthorizationError extends ErrorRedirect {
  readonly error: OAuthErrorName;
  readonly description: string;
}

/**
 * Reads a request to `/oauth2/authorize`, or the one that its client has pushed (RFC 9126, 4).
 * @param query as it was sent
 * @param parameters of the query; null if one is repeated
 */
export function readOAuth2AuthorizationRequest(
  portal: EmulatedPortal,
  query: string,
  parameters: ReadonlyMap<string, string> | null,
): AuthorizationRequest | AuthorizationError | AuthorizationProblem {
  if (parameters === null) return REPEATED;
  const uri = parameters.get('request_uri');
  if (uri?.startsWith(REQUEST_URI_START) !== true) return checkAuthorizationParameters(portal, parameters, query);
  const { pushedRequests, issuerName, settings } = portal;
  const pushed = pushedRequests.open(uri, issuerName, parameters.get('client_id') ?? '', settings.stateLifetime);
  if (pushed === null) return { problem: 'expired-request', found: 'a request_uri that has expired or was used' };
  const request = checkAuthorizationParameters(portal, pushed);
  return 'problem' in request || 'location' in request ? request : { ...request, requestUri: uri };
}

/**
 * Checks the parameters of an authorization request (RFC 6749, 4.1.1; RFC 7636, 4.3).
 * @param query as it was sent; left out if the request was pushed
 */
export function checkAuthorizationParameters(
  portal: EmulatedPortal,
  parameters: ReadonlyMap<string, string>,
  query?: string,
): Extract<AuthorizationRequest, { readonly flow: 'oauth2' }> | AuthorizationError | AuthorizationProblem {
  const { settings } = portal;
  const client = settings.clients.get(parameters.get('client_id') ?? '');
  if (client === undefined) return unknownClient(portal, parameters.get('client_id'));
  const sent = parameters.get('redirect_uri');
  // RFC 6749, 3.1.2.3: it may be left out if the client has registered exactly one. Some clouds use the first one.
  const redirectUri = sent ?? client.redirectUris[0];
  if (redirectUri === undefined)
    return { problem: 'malformed', found: `none, and none is registered for ${client.id}; ${REGISTER_REDIRECT_URI}` };
  if (!isRedirectUriAccepted(client, redirectUri, settings)) return unknownRedirect(client, redirectUri);
  const rawState = rawParameter(query ?? new URLSearchParams([...parameters]).toString(), 'state');
  const fail = (error: AuthorizationError['error'], description: string) => ({
    error,
    description,
    location: withQueryParameters(
      redirectUri,
      `error=${error}`,
      encodeParameter('error_description', description),
      ...(rawState === null ? [] : [rawState]),
      ...(settings.issInResponse ? [encodeParameter('iss', portal.issuer())] : []),
    ),
  });
  const responseType = parameters.get('response_type');
  if (responseType === undefined) return fail('invalid_request', 'response_type is missing');
  if (responseType !== 'code') return fail('unsupported_response_type', 'response_type must be code');
  if (parameters.has('request')) return fail('request_not_supported', 'send the parameters themselves');
  if (parameters.has('request_uri'))
    return fail('request_uri_not_supported', 'request_uri must be that of a pushed request');
  if ((parameters.get('response_mode') ?? 'query') !== 'query')
    return fail('invalid_request', 'response_mode must be query');
  if (settings.flows === 'device') return fail('unauthorized_client', 'use the device flow');
  if (query !== undefined && settings.requirePushedAuthorizationRequests)
    return fail('invalid_request', 'the request must be pushed to the pushed_authorization_request_endpoint');
  const unmet = unmetRequirement(settings.requiredParameters, 'authorize', client.id, (name) => parameters.get(name));
  if (unmet !== null) return fail('invalid_request', unmet);
  const resource = parameters.get('resource');
  if (resource !== undefined && !isResource(resource))
    return fail('invalid_target', 'resource must be an absolute URI');
  const requested = readRequestedScope(parameters.get('scope'), settings);
  if ('refused' in requested) return fail('invalid_scope', requested.refused);
  const { scope } = requested;
  const pkce = readCodeChallenge(parameters, settings);
  if ('refused' in pkce) return fail('invalid_request', pkce.refused);
  const demands = readLoginDemands(portal, parameters);
  if ('refused' in demands) return fail('invalid_request', demands.refused);
  const binding = {
    sentRedirectUri: sent !== undefined,
    challenge: pkce.challenge,
    offline: requestsOfflineAccess(scope, parameters),
    issuer: portal.issuerName,
    nonce: parameters.get('nonce'),
    jkt: parameters.get('dpop_jkt'),
    resource,
  };
  return { client, flow: 'oauth2', redirectUri, rawState, scope, binding, demands, requestUri: null };
}

/** The scopes that clients of OpenID Connect request. */
export const OPENID_SCOPES = 'openid profile email offline_access';

/** The values of `prompt` (OpenID Connect Core, 3.1.2.1). */
export const PROMPTS = ['none', 'login', 'consent', 'select_account'];

/** Reads `prompt`, `max_age`, `login_hint` and `id_token_hint`. Every page asks for consent and offers another user. */
function readLoginDemands(
  portal: EmulatedPortal,
  parameters: ReadonlyMap<string, string>,
): LoginDemands | { readonly refused: string } {
  const prompts = parameters.get('prompt')?.split(' ') ?? [];
  if (prompts.some((one) => !PROMPTS.includes(one))) return { refused: `prompt must be one of ${PROMPTS.join(', ')}` };
  if (prompts.includes('none') && prompts.length > 1) return { refused: 'prompt none excludes the others' };
  const maxAge = parameters.get('max_age') ?? null;
  if (maxAge !== null && !/^\d{1,9}$/.test(maxAge)) return { refused: 'max_age must be a number of seconds' };
  const hint = parameters.get('id_token_hint');
  const hinted = hint === undefined ? undefined : verifyIdToken(portal, hint);
  if (hinted === null) return { refused: 'id_token_hint must be an ID token of this server' };
  return {
    prompt: (['none', 'login'] as const).find((one) => prompts.includes(one)) ?? null,
    maxAge: maxAge === null ? null : Number(maxAge),
    user: hinted?.user ?? parameters.get('login_hint') ?? null,
    onlyUser: hinted !== undefined,
  };
}

/** Registered redirect URIs are compared as exact strings, except for the port of loopback addresses (RFC 9700, 2.1). */
function isRedirectUriAccepted(
  { redirectUris, isLocal }: Client,
  redirectUri: string,
  { redirectRule }: Settings,
): boolean {
  if (!isRedirectUri(redirectUri)) return false;
  const { protocol, hostname } = new URL(redirectUri);
  if (isLocal === true && protocol === 'http:' && LOCALHOST.includes(hostname)) return true;
  if (redirectUris.length > 0 || redirectRule === 'registered')
    return redirectUris.some((registered) => withoutLoopbackPort(registered) === withoutLoopbackPort(redirectUri));
  if (redirectRule === 'any' || protocol === 'https:') return true;
  return redirectRule === 'https-or-localhost' && protocol === 'http:' && LOCALHOST.includes(hostname);
}

const LOCALHOST = ['localhost', '127.0.0.1', '[::1]'];

/** A redirect URI without the port that a native application chooses when it starts the login (RFC 8252, 7.3). */
function withoutLoopbackPort(uri: string): string {
  return uri.replace(/^(http:\/\/(?:localhost|127\.0\.0\.1|\[::1\])):\d+/, '$1');
}

/** The PKCE parameters of an authorization request (RFC 7636, 4.3): the challenge, or why they are refused. */
type PkceResult = { readonly challenge: string | null } | { readonly refused: string };

/** A SHA-256, base64url. */
const S256_CHALLENGE = /^[\w-]{43}$/;

/** RFC 7636, 4.1. */
const CODE_VERIFIER = /^[\w.~-]{43,128}$/;

/**
 * Reads `code_challenge` and `code_challenge_method`. Only S256 is supported, so that a client that forgets the method,
 * which means plain, is found.
 */
export function readCodeChallenge(parameters: ReadonlyMap<string, string>, { pkce }: Settings): PkceResult {
  if (pkce === 'ignored') return { challenge: null };
  const challenge = parameters.get('code_challenge');
  const method = parameters.get('code_challenge_method');
  if (challenge === undefined) {
    if (method !== undefined) return { refused: 'code_challenge is missing' };
    return pkce === 'required' ? { refused: 'code_challenge is required' } : { challenge: null };
  }
  if (method !== 'S256') return { refused: 'code_challenge_method must be S256' };
  return S256_CHALLENGE.test(challenge)
    ? { challenge }
    : { refused: 'code_challenge must be a SHA-256 in base64url without padding' };
}

/**
 * Checks `code_verifier` (RFC 7636, 4.6). A verifier without a challenge is refused too (RFC 9700, 4.8.2).
 * @returns why it is refused, or null
 */
export function rejectCodeVerifier(challenge: string | null, verifier: string | undefined, { pkce }: Settings) {
  if (challenge === null) {
    return verifier === undefined || pkce === 'ignored' ? null : 'code_verifier without a code_challenge';
  }
  if (verifier === undefined) return 'code_verifier is missing';
  if (!CODE_VERIFIER.test(verifier)) return 'code_verifier must have 43 to 128 unreserved characters';
  return sha256(verifier) === challenge ? null : 'code_verifier does not match the code_challenge';
}

/** A scope with one space between its names, null if none was requested, or why it is refused. */
type ScopeResult = { readonly scope: string | null } | { readonly refused: string };

/** Reads the scope of an authorization request or of a device authorization request. */
export function readRequestedScope(sent: string | undefined, settings: Settings): ScopeResult {
  const requested = readScope(sent, settings);
  if ('refused' in requested) return requested;
  const names = requested.scope?.split(' ') ?? [];
  const missing = settings.requiredScopes?.split(' ').find((name) => !names.includes(name));
  return missing === undefined ? requested : { refused: `scope ${missing} is missing` };
}

/** Reads the scope of a request that may ask for less than was granted (RFC 6749, 6); without one, it is what was granted. */
export function readNarrowerScope(sent: string | undefined, granted: string | null, settings: Settings): ScopeResult {
  if (sent === undefined) return { scope: granted };
  const requested = readScope(sent, settings);
  if ('refused' in requested) return requested;
  const excess = requested.scope?.split(' ').find((name) => granted?.split(' ').includes(name) !== true);
  return excess === undefined ? requested : { refused: `scope ${excess} was not granted` };
}

function readScope(sent: string | undefined, settings: Settings): ScopeResult {
  const hasCommas = settings.scopeSeparator === 'comma';
  const scope = (hasCommas ? sent?.replaceAll(/, */g, ' ') : sent) ?? null;
  // Without its commas, a space is no separator there.
  const hasWrongSeparator = hasCommas && sent?.replaceAll(/, */g, ',').includes(' ') === true;
  if (scope !== null && (hasWrongSeparator || !SCOPE.test(scope)))
    return { refused: 'scope must be names with one separator between them' };
  const names = scope?.split(' ') ?? [];
  const known = settings.scopes?.split(' ') ?? names;
  const unknown = names.find((name) => !known.includes(name));
  return unknown === undefined ? { scope } : { refused: `scope ${unknown} does not exist` };
}

/** Whether a login may get a refresh token if not every one does. */
export function requestsOfflineAccess(scope: string | null, parameters: ReadonlyMap<string, string>): boolean {
  return scope?.split(' ').includes('offline_access') === true || parameters.get('access_type') === 'offline';
}
