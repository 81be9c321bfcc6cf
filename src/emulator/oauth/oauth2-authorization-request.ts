import type { EmulatedPortal } from '../portal.ts';
import type { Client } from '../settings/effective-settings.ts';
import { requirementsOf, unmetRequirement } from '../settings/requirements.ts';
import type { Settings } from '../settings/settings.ts';
import {
  type AuthorizationPageError,
  type AuthorizationRequest,
  type ErrorRedirect,
  encodeParameter,
  rawParameter,
  withQueryParameters,
} from './authorization-request.ts';
import { readCodeChallenge } from './pkce.ts';
import { readRequestedScope, requestsOfflineAccess } from './requested-scope.ts';

/**
 * Checks the query of a request to `/oauth2/authorize` (RFC 6749, 4.1.1; RFC 7636, 4.3).
 * @param query as it was sent
 * @param parameters of the query; null if one is repeated
 */
export function readOAuth2AuthorizationRequest(
  portal: EmulatedPortal,
  query: string,
  parameters: ReadonlyMap<string, string> | null,
): AuthorizationRequest | ErrorRedirect | AuthorizationPageError {
  if (parameters === null) return 'malformed';
  const { settings } = portal;
  const client = settings.clients.get(parameters.get('client_id') ?? '');
  if (client === undefined) return 'unknown-client';
  const sent = parameters.get('redirect_uri');
  // RFC 6749, 3.1.2.3: it may be left out if the client has registered exactly one. Some clouds use the first one.
  const redirectUri = sent ?? client.redirectUris[0];
  if (redirectUri === undefined) return 'malformed';
  if (!isRedirectUriAccepted(client, redirectUri, settings)) return 'unknown-redirect';
  const rawState = rawParameter(query, 'state');
  const fail = (error: string, description: string) => ({
    location: withQueryParameters(
      redirectUri,
      `error=${error}`,
      encodeParameter('error_description', description),
      ...(rawState === null ? [] : [rawState]),
      ...(settings.issInResponse ? [encodeParameter('iss', portal.origins().frontend)] : []),
    ),
  });
  const responseType = parameters.get('response_type');
  if (responseType === undefined) return fail('invalid_request', 'response_type is missing');
  if (responseType !== 'code') return fail('unsupported_response_type', 'response_type must be code');
  if (settings.flows === 'device') return fail('unauthorized_client', 'use the device flow');
  const unmet = unmetRequirement(requirementsOf(settings.requiredParameters, 'authorize', client.id), (name) =>
    parameters.get(name),
  );
  if (unmet !== null) return fail('invalid_request', unmet);
  const requested = readRequestedScope(parameters.get('scope'), settings);
  if ('refused' in requested) return fail('invalid_scope', requested.refused);
  const { scope } = requested;
  const pkce = readCodeChallenge(parameters, settings);
  if ('refused' in pkce) return fail('invalid_request', pkce.refused);
  const binding = {
    sentRedirectUri: sent !== undefined,
    challenge: pkce.challenge,
    offline: requestsOfflineAccess(scope, parameters),
  };
  return { client, flow: 'oauth2', redirectUri, rawState, scope, binding };
}

/** Registered redirect URIs are compared as exact strings (RFC 9700, 2.1). */
function isRedirectUriAccepted({ redirectUris }: Client, redirectUri: string, { redirectRule }: Settings): boolean {
  if (redirectUris.length > 0 || redirectRule === 'registered') return redirectUris.includes(redirectUri);
  // RFC 3986, 2: a URI has only visible ASCII characters; others would be no valid Location.
  if (!/^[\x21-\x7e]+$/.test(redirectUri) || !URL.canParse(redirectUri)) return false;
  const { protocol, hostname, hash } = new URL(redirectUri);
  // RFC 6749, 3.1.2: no fragment.
  if (hash !== '') return false;
  if (redirectRule === 'any' || protocol === 'https:') return true;
  return redirectRule === 'https-or-localhost' && protocol === 'http:' && LOCALHOST.includes(hostname);
}

const LOCALHOST = ['localhost', '127.0.0.1', '[::1]'];
