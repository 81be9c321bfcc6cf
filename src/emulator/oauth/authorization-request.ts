import { parseForm } from '../../system/http/form.ts';
import { codeDeliveryUrl, type EmulatedPortal } from '../portal.ts';
import type { Client } from '../settings/client-registry.ts';
import { SCOPE } from '../settings/validation.ts';
import type { OAuth2Binding } from './authorization-codes.ts';
import type { BrowserLogin } from './browser-logins.ts';
import type { HelperState } from './helper-flows.ts';

/**
 * The request in an authorize URL. Two flows share the endpoint:
 * - `helper`: the URL of a config response, recognised by a state that the emulator signed for this client. The code
 *   goes to code/set, and from there to the client's redirect_url or to its next poll.
 * - `ordinary`: the authorization code flow of a standard OAuth tool (RFC 6749, 4.1.1), with its own redirect_uri, and
 *   with its own state or none. The redirect_uri is either registered for the client and gets code and state unchanged,
 *   or it is the client's code/set address. From there a tool that watches its browser reads the code; for other tools
 *   the page at that address shows the code, to be copied.
 * A third one has its own endpoint:
 * - `oauth2`: the authorization code flow of `/oauth2/authorize`, see oauth2-authorization-request.ts.
 */
export type AuthorizationRequest = { readonly client: Client } & (
  | { readonly flow: 'helper'; readonly state: HelperState; readonly jwt: string }
  | {
      readonly flow: 'ordinary';
      readonly redirectUri: string;
      /** `state=` and its value exactly as sent, or null. */
      readonly rawState: string | null;
      readonly scope: string | null;
    }
  | {
      readonly flow: 'oauth2';
      readonly redirectUri: string;
      readonly rawState: string | null;
      readonly scope: string | null;
      readonly binding: OAuth2Binding;
      readonly demands: LoginDemands;
      /** The `request_uri` of a request that the client has pushed (RFC 9126), or null. */
      readonly requestUri: string | null;
    }
);

/** What an authorization request demands of the login of its user (OpenID Connect Core, 3.1.2.1). */
export interface LoginDemands {
  /** `none`: no page may be shown; `login`: the user must log in again. Null: a page is shown, as it always is. */
  readonly prompt: 'none' | 'login' | null;
  /** How long ago the user may have logged in, in seconds; null if at any time. */
  readonly maxAge: number | null;
  /** The name of the user whom the client expects, or null. */
  readonly user: string | null;
  /** Whether no other user may log in: with `id_token_hint`. */
  readonly onlyUser: boolean;
}

/** What a request without such parameters demands. */
export const ANY_LOGIN: LoginDemands = { prompt: null, maxAge: null, user: null, onlyUser: false };

/** RFC 6749, 5.2; RFC 8628, 3.5; OpenID Connect Core, 3.1.2.6. */
export type OAuthErrorName =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_grant'
  | 'invalid_scope'
  | 'invalid_target'
  | 'request_not_supported'
  | 'request_uri_not_supported'
  | 'unauthorized_client'
  | 'unsupported_grant_type'
  | 'unsupported_response_type'
  | 'authorization_pending'
  | 'slow_down'
  | 'access_denied'
  | 'expired_token'
  | 'invalid_dpop_proof'
  | 'use_dpop_nonce';

/** Errors of an authorize URL that are shown on a page. They must never redirect (RFC 6749, 4.1.2.1). */
export type AuthorizationPageError =
  | 'malformed'
  | 'expired-request'
  | 'unknown-client'
  | 'unknown-redirect'
  | 'invalid-state'
  | 'expired-state'
  | 'used-state';

/** What to do about a client that is not registered, in words that follow a semicolon. */
const REGISTER_CLIENT =
  'start the emulator with --client ID:SECRET, or --client ID for a public client (in the library: clients)';

/** What to do about a redirect URI that is not registered, in words that follow a semicolon. */
export const REGISTER_REDIRECT_URI =
  'start the emulator with --redirect-uri URI (in the library: redirectUris), or set redirect_rule to any, for clients without registered ones';

/** Such an error, and the request that has it, in words that follow "found". */
export interface AuthorizationProblem {
  readonly problem: AuthorizationPageError;
  readonly found: string;
}

/** A parameter is repeated. */
export const REPEATED: AuthorizationProblem = { problem: 'malformed', found: 'one with a repeated parameter' };

/** The client_id of a request is not registered. */
export function unknownClient({ settings: { clients } }: EmulatedPortal, id: string | undefined): AuthorizationProblem {
  return { problem: 'unknown-client', found: `${clients.describeUnknown(id)}; ${REGISTER_CLIENT}` };
}

/** The redirect_uri of a request is not registered for its client. */
export function unknownRedirect({ id, redirectUris, isLocal }: Client, found: string): AuthorizationProblem {
  const registered = redirectUris.join(', ') || (isLocal ? 'every http address of this machine' : 'none');
  return {
    problem: 'unknown-redirect',
    found: `${shownUri(found)}; registered for ${id}: ${registered}; ${REGISTER_REDIRECT_URI}`,
  };
}

/** Why the redirect_uri of a token request is refused. @param expected that of the authorization request */
export function redirectProblem(found: string | undefined, expected: string | null): string {
  const shown = found === undefined ? 'none' : shownUri(found);
  return `redirect_uri must be that of the authorization request, ${shownUri(expected ?? '')} (found ${shown})`;
}

/** A URI as messages repeat it, without a user and a password. */
function shownUri(uri: string): string {
  return uri.slice(0, 300).replace(/\/\/[^/]*@/, '//');
}

/** What a state is that has such an error, in words that follow "found". */
export const STATE_PROBLEMS = {
  'invalid-state': 'one that this emulator has not issued',
  'expired-state': 'one that has expired',
  'used-state': 'one with which a user has already logged in or refused',
} as const;

/** Other errors go to a redirect_uri that is registered for the client (RFC 6749, 4.1.2.1). */
export interface ErrorRedirect {
  readonly location: string;
}

/**
 * Checks the query of an authorize URL.
 * @param query as it was sent
 * @param parameters of the query; null if one is repeated
 */
export function readAuthorizationRequest(
  portal: EmulatedPortal,
  query: string,
  parameters: ReadonlyMap<string, string> | null,
): AuthorizationRequest | ErrorRedirect | AuthorizationProblem {
  if (parameters === null) return REPEATED;
  const client = portal.settings.clients.get(parameters.get('client_id') ?? '');
  if (client === undefined) return unknownClient(portal, parameters.get('client_id'));
  const redirectUri = parameters.get('redirect_uri');
  const toHelper = redirectUri === undefined || redirectUri === codeDeliveryUrl(portal, client);
  if (!toHelper && !client.redirectUris.includes(redirectUri)) return unknownRedirect(client, redirectUri);
  const rawState = rawParameter(query, 'state');
  const error = redirectableError(parameters);
  if (!toHelper && error !== null) {
    return { location: withQueryParameters(redirectUri, `error=${error}`, ...(rawState === null ? [] : [rawState])) };
  }
  if (parameters.get('response_type') !== 'code')
    return { problem: 'malformed', found: 'one whose response_type is not code' };
  if (toHelper) {
    const helper = readHelperRequest(portal, parameters.get('state') ?? '', client);
    if (typeof helper !== 'string') return helper;
    if (helper !== 'invalid-state' || redirectUri === undefined)
      return { problem: helper, found: STATE_PROBLEMS[helper] };
  }
  const scope = parameters.get('scope') ?? null;
  return { client, flow: 'ordinary', redirectUri, rawState, scope };
}

function redirectableError(parameters: ReadonlyMap<string, string>): string | null {
  const responseType = parameters.get('response_type');
  if (responseType === undefined) return 'invalid_request';
  if (responseType !== 'code') return 'unsupported_response_type';
  return SCOPE.test(parameters.get('scope') ?? 'none') ? null : 'invalid_scope';
}

/** The helper flow of a state. @param client the state must be bound to it; default: to any registered client */
export function readHelperRequest(
  portal: EmulatedPortal,
  jwt: string,
  client?: Client,
): AuthorizationRequest | 'invalid-state' | 'expired-state' | 'used-state' {
  const checked = portal.states.validate(jwt, client?.id);
  if (checked.kind === 'expired') return 'expired-state';
  if (checked.kind === 'foreign') return 'invalid-state';
  const owner = portal.settings.clients.get(checked.state.clientId);
  if (owner === undefined) return 'invalid-state';
  if (portal.helperFlows.find(checked.state.id)?.done === true) return 'used-state';
  return { client: owner, flow: 'helper', state: checked.state, jwt };
}

/**
 * Issues a code after the user has allowed access, unless the client demands another user.
 * @returns the URL to which the browser is redirected
 */
export function allowAuthorization(
  portal: EmulatedPortal,
  request: AuthorizationRequest,
  { user, loggedInAt }: BrowserLogin,
): string {
  const isOther = request.flow === 'oauth2' && request.demands.onlyUser && request.demands.user !== user;
  if (isOther) return denyAuthorization(portal, request, 'login_required');
  const helper = request.flow === 'helper';
  const code = portal.codes.issue({
    clientId: request.client.id,
    user,
    scope: helper ? null : request.scope,
    stateId: helper ? request.state.id : null,
    redirectUri: helper ? null : request.redirectUri,
    ...(request.flow === 'oauth2' && { oauth2: { ...request.binding, loggedInAt } }),
  });
  return authorizationResponseUrl(portal, request, encodeParameter('code', code.value));
}

/** Why a valid authorization request gets no code (RFC 6749, 4.1.2.1; OpenID Connect Core, 3.1.2.6). */
export type AuthorizationRefusal = 'access_denied' | 'login_required' | 'consent_required';

const REFUSALS: Readonly<Record<AuthorizationRefusal, string>> = {
  access_denied: 'the user has refused',
  login_required:
    'End-User authentication is required: prompt, max_age, login_hint and id_token_hint allow no remembered login',
  consent_required: 'End-User consent is required: this user has not allowed this client the requested scope yet',
};

/** The error response to a valid request. @returns the URL to which the browser is redirected */
export function denyAuthorization(
  portal: EmulatedPortal,
  request: AuthorizationRequest,
  error: AuthorizationRefusal = 'access_denied',
): string {
  const description = request.flow === 'oauth2' ? `&${encodeParameter('error_description', REFUSALS[error])}` : '';
  return authorizationResponseUrl(portal, request, `error=${error}${description}`);
}

function authorizationResponseUrl(portal: EmulatedPortal, request: AuthorizationRequest, result: string): string {
  if (request.flow === 'helper') {
    return withQueryParameters(codeDeliveryUrl(portal, request.client), result, encodeParameter('state', request.jwt));
  }
  if (request.flow === 'oauth2' && request.requestUri !== null) portal.pushedRequests.delete(request.requestUri);
  const iss = request.flow === 'oauth2' && portal.settings.issInResponse;
  return withQueryParameters(
    request.redirectUri,
    result,
    ...(request.rawState === null ? [] : [request.rawState]),
    ...(iss ? [encodeParameter('iss', portal.issuer())] : []),
  );
}

/**
 * Adds parameters to the query of a URL, and leaves the rest unchanged, including its query and fragment.
 * @param parameters percent-encoded, such as `code=abc`
 */
export function withQueryParameters(address: string, ...parameters: string[]): string {
  const [front = '', ...fragment] = address.split('#');
  const query = parameters.join('&');
  const joint = !front.includes('?') ? '?' : front.endsWith('?') || front.endsWith('&') ? '' : '&';
  return [`${front}${joint}${query}`, ...fragment].join('#');
}

/** `name=value`, with the value percent-encoded. */
export function encodeParameter(name: string, value: string): string {
  return `${name}=${encodeURIComponent(value)}`;
}

/**
 * Parses a query or a form. Of several APIs the token is for the last one (RFC 8707, 2; RFC 8693, 2.1).
 * @returns null if another parameter is repeated (RFC 6749, 3.1 and 3.2)
 */
export function parseParameters(text: string): ReadonlyMap<string, string> | null {
  return parseForm(text, ['resource', 'audience']);
}

/** A query parameter exactly as sent, including `name=`; null if it is missing. */
export function rawParameter(query: string, name: string): string | null {
  const sent = query.split('&').find((part) => new URLSearchParams(part).has(name));
  return sent === undefined ? null : `${name}=${sent.includes('=') ? sent.slice(sent.indexOf('=') + 1) : ''}`;
}
