import { timingSafeEqualText } from '../../system/secret-hash.ts';
import type { Client, EffectiveSettings } from '../settings/effective-settings.ts';
import { authenticationError, invalidRequest, type OAuthError } from './oauth-error.ts';
import { basicCredentials } from './request-form.ts';

/** An authenticated client, or the error response. */
export type ClientAuthentication = { readonly client: Client } | { readonly problem: OAuthError };

/**
 * Client authentication at the token and revocation endpoints: `client_id` and `client_secret` in the form (docs/portal.md, 5), or HTTP
 * Basic (RFC 6749, 2.3.1), never both (2.3). It does not look at codes and tokens, so that a failed attempt uses up
 * none.
 * @param authorization the Authorization header, if any
 */
export function authenticateClient(
  settings: EffectiveSettings,
  authorization: string | undefined,
  form: ReadonlyMap<string, string>,
): ClientAuthentication {
  const formId = form.get('client_id');
  const formSecret = form.get('client_secret');
  if (authorization === undefined) return verifyCredentials(settings, formId, formSecret, false);
  const basic = basicCredentials(authorization);
  if (formSecret !== undefined) return { problem: invalidRequest('more than one method of client authentication') };
  if (basic === null || settings.basic === 'refuse') {
    return authenticationError('this Authorization header is not accepted', true);
  }
  if (formId !== undefined && formId !== basic.id) {
    return { problem: invalidRequest('client_id differs from the one in the Authorization header') };
  }
  return verifyCredentials(settings, basic.id, basic.secret, true);
}

function verifyCredentials(
  settings: EffectiveSettings,
  id = '',
  secret = '',
  challenge: boolean,
): ClientAuthentication {
  const client = settings.clients.get(id);
  if (isSecretOf(client, secret)) return { client };
  return authenticationError('client authentication failed', challenge);
}

/** Whether a client has this secret. A client without one has none, and an unknown client takes the same time. */
export function isSecretOf(client: Client | undefined, secret: string): client is Client {
  const isEqual = timingSafeEqualText(secret, client?.secret ?? 'no secret');
  return isEqual && client !== undefined && client.secret !== null;
}
