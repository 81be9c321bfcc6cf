import { codeSetUrl, type Portal } from './portal.ts';
import { parameter, withParameters } from './redirection.ts';
import type { Client } from './settings/settings.ts';

/** What the helper makes of a browser that comes to code/set. */
export type Arrival =
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
export async function arrive(
  portal: Portal,
  client: Client,
  form: ReadonlyMap<string, string> | null,
): Promise<Arrival> {
  if (form === null) return { kind: 'invalid' };
  const checked = await portal.states.check(form.get('state') ?? '', client.id);
  if (form.has('error')) {
    if (checked.kind !== 'good') return { kind: 'refused' };
    portal.runs.refuse(checked.state);
    return refusal(portal, checked.state.redirectUrl);
  }
  const code = portal.codes.find(form.get('code') ?? '');
  if (code === undefined || code.clientId !== client.id) return { kind: 'invalid' };
  if (!portal.codes.lives(code, portal.settings.codeLifetime)) return { kind: 'expired' };
  if (code.stateId === null) {
    if (code.redirectUri !== codeSetUrl(portal, client)) return { kind: 'invalid' };
    return code.grantId === null ? { kind: 'show', code: code.value } : { kind: 'expired' };
  }
  if (checked.kind === 'expired') return { kind: 'expired' };
  if (checked.kind === 'foreign' || checked.state.id !== code.stateId) return { kind: 'invalid' };
  portal.runs.bring(checked.state, code.value);
  const redirectUrl = checked.state.redirectUrl;
  if (redirectUrl === null) return { kind: 'delivered' };
  return { kind: 'redirect', location: withParameters(redirectUrl, parameter('code', code.value)) };
}

function refusal(portal: Portal, redirectUrl: string | null): Arrival {
  if (redirectUrl === null || !portal.settings.relayRefusal) return { kind: 'refused' };
  return { kind: 'redirect', location: withParameters(redirectUrl, 'error=access_denied') };
}
