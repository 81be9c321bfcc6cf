import { codeSetUrl, type EmulatedPortal } from '../portal.ts';
import type { Client } from '../settings/effective-settings.ts';
import type { HelperState } from './helper-state.ts';

/**
 * What an authorize URL asks for. Two flows share the endpoint:
 * - `helper`: the URL of a config response, told by a state that the emulator itself signed for this client. The code
 *   goes to code/set, and from there to the client's redirect_url or to its next poll.
 * - `ordinary`: a standard OAuth tool's own authorization code flow (RFC 6749, 4.1.1), with a redirect_uri and a state
 *   of its own, or none. The redirect_uri is one registered for the client, where code and state go as they are, or the
 *   client's code/set address, as standard tools have it: a tool that watches its browser takes the code from there,
 *   and for all others the page there shows it, to be copied.
 */
export type AuthorizationRequest = { readonly client: Client } & (
  | { readonly flow: 'helper'; readonly state: HelperState; readonly jwt: string }
  | {
      readonly flow: 'ordinary';
      readonly redirectUri: string;
      /** `state=` and its value just as they were sent, or null. */
      readonly rawState: string | null;
      readonly scope: string | null;
    }
);

/** Why an authorize URL shows a page. None of these may ever redirect (RFC 6749, 4.1.2.1). */
export type AuthorizationPageError =
  | 'malformed'
  | 'unknown-client'
  | 'unknown-redirect'
  | 'invalid-state'
  | 'expired-state'
  | 'used-state';

/** What is wrong otherwise goes to a redirect_uri that is registered for the client (RFC 6749, 4.1.2.1). */
export interface ErrorRedirect {
  readonly location: string;
}

/** Reads the query of an authorize URL. */
export async function readAuthorizationRequest(
  portal: EmulatedPortal,
  query: string,
  form: ReadonlyMap<string, string> | null,
): Promise<AuthorizationRequest | ErrorRedirect | AuthorizationPageError> {
  if (form === null) return 'malformed';
  const client = portal.settings.clients.get(form.get('client_id') ?? '');
  if (client === undefined) return 'unknown-client';
  const redirectUri = form.get('redirect_uri');
  const toHelper = redirectUri === undefined || redirectUri === codeSetUrl(portal, client);
  if (!toHelper && !client.redirectUris.includes(redirectUri)) return 'unknown-redirect';
  const rawState = rawParameter(query, 'state');
  const error = redirectableError(form);
  if (!toHelper && error !== null) {
    return { location: withQueryParameters(redirectUri, `error=${error}`, ...(rawState === null ? [] : [rawState])) };
  }
  if (form.get('response_type') !== 'code') return 'malformed';
  if (toHelper) {
    const helper = await readHelperRequest(portal, form.get('state') ?? '', client);
    if (helper !== 'invalid-state' || redirectUri === undefined) return helper;
  }
  const scope = form.get('scope') ?? null;
  return { client, flow: 'ordinary', redirectUri, rawState, scope };
}

function redirectableError(form: ReadonlyMap<string, string>): string | null {
  const responseType = form.get('response_type');
  if (responseType === undefined) return 'invalid_request';
  if (responseType !== 'code') return 'unsupported_response_type';
  return isScope(form.get('scope') ?? 'none') ? null : 'invalid_scope';
}

/** The helper flow that a state belongs to: of this client, or of any registered one. */
export async function readHelperRequest(
  portal: EmulatedPortal,
  jwt: string,
  client?: Client,
): Promise<AuthorizationRequest | 'invalid-state' | 'expired-state' | 'used-state'> {
  const checked = await portal.states.validate(jwt, client?.id);
  if (checked.kind === 'expired') return 'expired-state';
  if (checked.kind === 'foreign') return 'invalid-state';
  const owner = portal.settings.clients.get(checked.state.clientId);
  if (owner === undefined) return 'invalid-state';
  if (portal.helperFlows.find(checked.state.id)?.done === true) return 'used-state';
  return { client: owner, flow: 'helper', state: checked.state, jwt };
}

/** The user allows it: issues a code. @returns where the browser goes next */
export function allowAuthorization(portal: EmulatedPortal, request: AuthorizationRequest, user: string): string {
  const helper = request.flow === 'helper';
  const code = portal.codes.issue({
    clientId: request.client.id,
    user,
    scope: helper ? null : request.scope,
    stateId: helper ? request.state.id : null,
    redirectUri: helper ? null : request.redirectUri,
  });
  return authorizationResponseUrl(portal, request, encodeParameter('code', code.value));
}

/** The user refuses. @returns where the browser goes next (RFC 6749, 4.1.2.1) */
export function denyAuthorization(portal: EmulatedPortal, request: AuthorizationRequest): string {
  return authorizationResponseUrl(portal, request, 'error=access_denied');
}

function authorizationResponseUrl(portal: EmulatedPortal, request: AuthorizationRequest, result: string): string {
  if (request.flow === 'helper') {
    return withQueryParameters(codeSetUrl(portal, request.client), result, encodeParameter('state', request.jwt));
  }
  return withQueryParameters(request.redirectUri, result, ...(request.rawState === null ? [] : [request.rawState]));
}

/** A scope: names with one space between them (RFC 6749, 3.3). */
const SCOPE = /^[\x21\x23-\x5B\x5D-\x7E]+( [\x21\x23-\x5B\x5D-\x7E]+)*$/;

/** Whether a text is a scope. */
export function isScope(text: string): boolean {
  return SCOPE.test(text);
}

/**
 * Adds parameters to an address and leaves the rest of it as it is, its own query and fragment included.
 * @param parameters already percent-encoded, such as `code=abc`
 */
export function withQueryParameters(address: string, ...parameters: string[]): string {
  const [front = '', ...fragment] = address.split('#');
  const query = parameters.join('&');
  const joint = !front.includes('?') ? '?' : front.endsWith('?') || front.endsWith('&') ? '' : '&';
  return [`${front}${joint}${query}`, ...fragment].join('#');
}

/** A parameter with its value percent-encoded. */
export function encodeParameter(name: string, value: string): string {
  return `${name}=${encodeURIComponent(value)}`;
}

/** The bytes of a query's parameter just as they were sent, `name=` included; null where it is not there. */
function rawParameter(query: string, name: string): string | null {
  const sent = query.split('&').find((part) => new URLSearchParams(part).has(name));
  return sent === undefined ? null : `${name}=${sent.includes('=') ? sent.slice(sent.indexOf('=') + 1) : ''}`;
}
