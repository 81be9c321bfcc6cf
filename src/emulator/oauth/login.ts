import * as v from 'valibot';
import { camelCase, exactObject, renameKeys } from '../json.ts';
import { codeDeliveryUrl, type EmulatedPortal } from '../portal.ts';
import type { Client } from '../settings/client-registry.ts';
import {
  type AuthorizationRequest,
  allowAuthorization,
  denyAuthorization,
  type ErrorRedirect,
  encodeParameter,
  parseParameters,
  readAuthorizationRequest,
  readHelperRequest,
  STATE_PROBLEMS,
  withQueryParameters,
} from './authorization-request.ts';
import { forIssuer, splitIssuer } from './issuers.ts';
import { readOAuth2AuthorizationRequest } from './oauth2-authorization-request.ts';

/** The result of a browser's request to code/set. */
export type CodeDeliveryOutcome =
  /** Redirects to the client's redirect_url. */
  | { readonly kind: 'redirect'; readonly location: string }
  /** The helper has the code; the client gets it with its next poll. */
  | { readonly kind: 'delivered' }
  /** Ordinary flow of a tool whose redirect_uri is this address: a person copies the code into the tool. */
  | { readonly kind: 'show'; readonly code: string }
  | { readonly kind: 'refused' | 'expired' | 'invalid' };

/**
 * Handles a request to the redirect target of the helper (docs/portal.md, 4). It accepts a code only with the state
 * that the code was issued for, so that an attacker can't inject one. Repeating the request has the same result.
 */
export function handleCodeDelivery(
  portal: EmulatedPortal,
  client: Client,
  form: ReadonlyMap<string, string> | null,
): CodeDeliveryOutcome {
  if (form === null) return { kind: 'invalid' };
  const verified = portal.states.validate(form.get('state') ?? '', client.id);
  if (form.has('error')) {
    if (verified.kind !== 'good') return { kind: 'refused' };
    portal.helperFlows.denyLogin(verified.state);
    return deniedOutcome(portal, verified.state.redirectUrl);
  }
  const code = portal.codes.find(form.get('code') ?? '');
  if (code === undefined || code.clientId !== client.id) return { kind: 'invalid' };
  if (!portal.codes.isUnexpired(code, portal.settings.codeLifetime)) return { kind: 'expired' };
  if (code.stateId === null) {
    if (code.redirectUri !== codeDeliveryUrl(portal, client)) return { kind: 'invalid' };
    return code.grantId === null ? { kind: 'show', code: code.value } : { kind: 'expired' };
  }
  if (verified.kind === 'expired') return { kind: 'expired' };
  if (verified.kind === 'foreign' || verified.state.id !== code.stateId) return { kind: 'invalid' };
  portal.helperFlows.deliverCode(verified.state, code.value);
  const redirectUrl = verified.state.redirectUrl;
  if (redirectUrl === null) return { kind: 'delivered' };
  return { kind: 'redirect', location: withQueryParameters(redirectUrl, encodeParameter('code', code.value)) };
}

function deniedOutcome(portal: EmulatedPortal, redirectUrl: string | null): CodeDeliveryOutcome {
  if (redirectUrl === null || !portal.settings.relayRefusal) return { kind: 'refused' };
  return { kind: 'redirect', location: withQueryParameters(redirectUrl, 'error=access_denied') };
}

/** What a user decides without a browser. */
interface UserDecision {
  /** Name of a user; optional with `deny`. */
  readonly user?: string | undefined;
  /** Whether the user refuses. Default: false. */
  readonly deny?: boolean | undefined;
}

const DECISION = { user: v.optional(v.string()), deny: v.optional(v.boolean()) };

/** A {@link LoginRequest} in the API's spelling. */
export const LoginBody = exactObject({
  authorize_url: v.optional(v.string()),
  state: v.optional(v.string()),
  ...DECISION,
});

/** A login without a browser: by the URL that the user's browser would open, or by the helper's `state`. */
export interface LoginRequest extends UserDecision {
  /** Of `/oauth2/authorize` or `/sso/authorize`. */
  readonly authorizeUrl?: string | URL | undefined;
  /** The `state` of an authorize_url or code_url of the helper, or the ID of a waiting login. */
  readonly state?: string | undefined;
}

/** The members of a {@link LoginRequest}. */
export const LOGIN_REQUEST = {
  ...renameKeys<v.GenericSchema>(LoginBody.entries, camelCase),
  // Anything: what is no URL is refused like a URL that is not the emulator's.
  authorizeUrl: v.optional(v.unknown()),
};

/** The result of a login. `location` is the client's redirect URI, or the helper's page that confirms the login. */
export const LoginResult = v.strictObject({
  location: v.pipe(v.string(), v.url(), v.description('The URL to which a browser would be redirected')),
});
export type LoginResult = Readonly<v.InferOutput<typeof LoginResult>>;

/** An invalid login request. The message names the library's member, the value found and the values allowed. */
export class LoginError extends Error {
  override readonly name = 'LoginError';
}

/**
 * Logs a user in, or refuses, like the login page. In the helper's flow it follows the redirect to code/set, so that
 * code_url serves the code after a login.
 * @throws LoginError if the URL, the state or the user is invalid
 */
export function login(
  currentPortal: EmulatedPortal,
  { authorizeUrl, state, user, deny = false }: LoginRequest,
): LoginResult {
  const url = String(authorizeUrl ?? '');
  const { issuer } = splitIssuer(pathOf(url), currentPortal.settings.issuers);
  const portal = forIssuer(currentPortal, issuer);
  if ((authorizeUrl === undefined) === (state === undefined)) {
    const found = state === undefined ? 'neither' : 'both';
    throw new LoginError(`authorizeUrl: must be given, or else state (found ${found})`);
  }
  const request = authorizeUrl === undefined ? readState(portal, state ?? '') : readAuthorizeUrl(portal, url);
  // A browser would be redirected at once.
  if ('location' in request) return { location: request.location };
  checkUser(portal, user, deny);
  const location =
    deny || user === undefined
      ? denyAuthorization(portal, request)
      : allowAuthorization(portal, request, { user, loggedInAt: portal.now() });
  if (request.flow !== 'helper') return { location };
  const outcome = handleCodeDelivery(portal, request.client, new Map(new URL(location).searchParams));
  return { location: outcome.kind === 'redirect' ? outcome.location : location };
}

function readState(portal: EmulatedPortal, state: string): AuthorizationRequest {
  const request = readHelperRequest(portal, portal.helperFlows.find(state)?.login?.jwt ?? state);
  if (typeof request !== 'string') return request;
  throw new LoginError(`state: must be the valid state of a config response (found ${STATE_PROBLEMS[request]})`);
}

function pathOf(url: string): string {
  return URL.canParse(url) ? new URL(url).pathname : '';
}

function readAuthorizeUrl(portal: EmulatedPortal, text: string): AuthorizationRequest | ErrorRedirect {
  const url = URL.canParse(text) ? new URL(text) : null;
  const { frontend } = portal.origins();
  const { url: path } = splitIssuer(pathOf(text), portal.settings.issuers);
  const read = url?.origin === frontend ? AUTHORIZE_READERS[path] : undefined;
  if (url === null || read === undefined) {
    const paths = Object.keys(AUTHORIZE_READERS).join(' or ');
    const found = JSON.stringify(text.replace(/[?#].*/s, '').slice(0, 100));
    throw new LoginError(`authorizeUrl: must be a URL of ${frontend} with the path ${paths} (found ${found})`);
  }
  // As it was sent, because the client gets its state back unchanged.
  const query = /\?([^#]*)/.exec(text)?.[1] ?? '';
  const request = read(portal, query, parseParameters(query));
  if (!('problem' in request)) return request;
  throw new LoginError(`authorizeUrl: must be a valid authorization request (found ${request.found})`);
}

/** What reads the query of an authorize URL, by its path. */
const AUTHORIZE_READERS: Readonly<
  Record<string, typeof readAuthorizationRequest | typeof readOAuth2AuthorizationRequest>
> = { '/sso/authorize': readAuthorizationRequest, '/oauth2/authorize': readOAuth2AuthorizationRequest };

/** A {@link DeviceApproval} in the API's spelling. */
export const DeviceApprovalBody = exactObject({ user_code: v.string(), ...DECISION });

/** The decision about a device's login, without a browser. */
export interface DeviceApproval extends UserDecision {
  /** With or without its hyphen, in any case. */
  readonly userCode: string;
}

/** The members of a {@link DeviceApproval}. */
export const DEVICE_APPROVAL = renameKeys<v.GenericSchema>(DeviceApprovalBody.entries, camelCase);

/**
 * Allows or refuses the access of a device, like the page at its verification_uri.
 * @throws LoginError if the user code is unknown, expired or already decided, or if the user is unknown
 */
export function approveDevice(portal: EmulatedPortal, { userCode, user, deny = false }: DeviceApproval): void {
  const login = portal.deviceLogins.findByUserCode(userCode);
  if (login === undefined || !portal.deviceLogins.isWaiting(login)) {
    const found = login === undefined ? 'an unknown one' : login.decision === null ? 'an expired one' : 'a used one';
    throw new LoginError(`userCode: must be the code of a device that waits for its user (found ${found})`);
  }
  checkUser(portal, user, deny);
  portal.deviceLogins.decide(login, deny || user === undefined ? { denied: true } : { user, loggedInAt: portal.now() });
}

/** Only a refusal needs no user. */
function checkUser({ settings: { users } }: EmulatedPortal, user: string | undefined, deny: boolean): void {
  if (user === undefined ? deny : users.has(user)) return;
  const found = user === undefined ? 'none' : 'an unknown name';
  throw new LoginError(`user: must be one of ${[...users.keys()].join(', ')} (found ${found})`);
}
