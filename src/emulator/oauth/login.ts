import * as v from 'valibot';
import { codeSetUrl, type EmulatedPortal } from '../portal.ts';
import type { Client } from '../settings/effective-settings.ts';
import {
  allowAuthorization,
  denyAuthorization,
  encodeParameter,
  readHelperRequest,
  withQueryParameters,
} from './authorization-request.ts';

/** What the helper makes of a browser that comes to code/set. */
export type CodeSetOutcome =
  /** The steady request flow: on to the client's own redirect_url. */
  | { readonly kind: 'redirect'; readonly location: string }
  /** The helper has the code, and the client gets it with its next poll. */
  | { readonly kind: 'delivered' }
  /** Ordinary flow of a tool that gave this address as its redirect_uri: a person carries the code over. */
  | { readonly kind: 'show'; readonly code: string }
  | { readonly kind: 'refused' | 'expired' | 'invalid' };

/**
 * The redirect target of the helper (specification, endpoint 6; its behaviour is not shown there). A code is taken only
 * together with the state it was issued for, so that nobody can plant one. Coming again with the same code does the same.
 */
export async function handleCodeSet(
  portal: EmulatedPortal,
  client: Client,
  form: ReadonlyMap<string, string> | null,
): Promise<CodeSetOutcome> {
  if (form === null) return { kind: 'invalid' };
  const checked = await portal.states.validate(form.get('state') ?? '', client.id);
  if (form.has('error')) {
    if (checked.kind !== 'good') return { kind: 'refused' };
    portal.helperFlows.denyLogin(checked.state);
    return deniedOutcome(portal, checked.state.redirectUrl);
  }
  const code = portal.codes.find(form.get('code') ?? '');
  if (code === undefined || code.clientId !== client.id) return { kind: 'invalid' };
  if (!portal.codes.isUnexpired(code, portal.settings.codeLifetime)) return { kind: 'expired' };
  if (code.stateId === null) {
    if (code.redirectUri !== codeSetUrl(portal, client)) return { kind: 'invalid' };
    return code.grantId === null ? { kind: 'show', code: code.value } : { kind: 'expired' };
  }
  if (checked.kind === 'expired') return { kind: 'expired' };
  if (checked.kind === 'foreign' || checked.state.id !== code.stateId) return { kind: 'invalid' };
  portal.helperFlows.deliverCode(checked.state, code.value);
  const redirectUrl = checked.state.redirectUrl;
  if (redirectUrl === null) return { kind: 'delivered' };
  return { kind: 'redirect', location: withQueryParameters(redirectUrl, encodeParameter('code', code.value)) };
}

function deniedOutcome(portal: EmulatedPortal, redirectUrl: string | null): CodeSetOutcome {
  if (redirectUrl === null || !portal.settings.relayRefusal) return { kind: 'refused' };
  return { kind: 'redirect', location: withQueryParameters(redirectUrl, 'error=access_denied') };
}

/** A login without a browser. */
export const LoginRequest = v.strictObject({
  /** The `state` of an authorize_url or code_url, or the id of a waiting login's. */
  state: v.string(),
  /** Name of a user; may be left out when refusing. */
  user: v.optional(v.string()),
  /** True: the user refuses instead. Default: false. */
  deny: v.optional(v.boolean()),
});
export type LoginRequest = Readonly<v.InferInput<typeof LoginRequest>>;

/** What a login comes to. `location` is the client's redirect_url, or the helper's own page that says it is done. */
export const LoginResult = v.strictObject({
  location: v.pipe(v.string(), v.url(), v.description('Where a browser would go next')),
});
export type LoginResult = Readonly<v.InferOutput<typeof LoginResult>>;

/** A login request that can't be done; the message names the member, what was found and what is allowed. */
export class LoginError extends Error {
  override readonly name = 'LoginError';
}

/**
 * Logs a user in, or refuses, as the login page would, and follows the redirect to the helper: afterwards the helper has
 * the code.
 * @throws LoginError
 */
export async function login(
  standing: EmulatedPortal,
  { state, user, deny = false }: LoginRequest,
): Promise<LoginResult> {
  const portal = { ...standing, settings: standing.settings };
  const request = await readHelperRequest(portal, portal.helperFlows.find(state)?.login?.jwt ?? state);
  if (typeof request === 'string') {
    throw new LoginError(`state: found one that is no good (${request}); allowed is the state of a config response`);
  }
  if (!(user === undefined ? deny : portal.settings.users.has(user))) {
    const names = [...portal.settings.users.keys()].join(', ');
    throw new LoginError(`user: found ${user === undefined ? 'none' : 'an unknown name'}; allowed are ${names}`);
  }
  const location =
    deny || user === undefined ? denyAuthorization(portal, request) : allowAuthorization(portal, request, user);
  const arrival = await handleCodeSet(portal, request.client, new Map(new URL(location).searchParams));
  return { location: arrival.kind === 'redirect' ? arrival.location : location };
}
