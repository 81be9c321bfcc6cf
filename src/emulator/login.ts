import { allow, helperRequest, refuse } from './authorization-request.ts';
import { arrive } from './code-arrival.ts';
import type { Portal } from './portal.ts';

/** A login without a browser. */
export interface LoginRequest {
  /** The `state` of an authorize_url or code_url, or the id of a waiting login's. */
  readonly state: string;
  /** Name of a user; may be left out when refusing. */
  readonly user?: string | undefined;
  /** True: the user refuses instead. Default: false. */
  readonly deny?: boolean | undefined;
}

/** What a login comes to. */
export interface LoginResult {
  /** Where a browser would go next: the client's redirect_url, or the helper's own page that says it is done. */
  readonly location: string;
}

/** A login request that can't be done; the message names the member, what was found and what is allowed. */
export class LoginError extends Error {
  override readonly name = 'LoginError';
}

/**
 * Logs a user in, or refuses, as the login page would, and follows the redirect to the helper: afterwards the helper has
 * the code.
 * @throws LoginError
 */
export async function login(standing: Portal, { state, user, deny = false }: LoginRequest): Promise<LoginResult> {
  const portal = { ...standing, settings: standing.settings };
  const request = await helperRequest(portal, portal.runs.find(state)?.login?.jwt ?? state);
  if (typeof request === 'string') {
    throw new LoginError(`state: found one that is no good (${request}); allowed is the state of a config response`);
  }
  if (!(user === undefined ? deny : portal.settings.users.has(user))) {
    const names = [...portal.settings.users.keys()].join(', ');
    throw new LoginError(`user: found ${user === undefined ? 'none' : 'an unknown name'}; allowed are ${names}`);
  }
  const location = deny || user === undefined ? refuse(portal, request) : allow(portal, request, user);
  const arrival = await arrive(portal, request.client, new Map(new URL(location).searchParams));
  return { location: arrival.kind === 'redirect' ? arrival.location : location };
}
