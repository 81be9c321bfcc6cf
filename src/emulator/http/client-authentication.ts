import { sameSecret } from '../../system/compare.ts';
import type { Client, Settings } from '../settings/settings.ts';
import type { OAuthError } from './oauth-error.ts';
import { basicCredentials } from './request-form.ts';

/** A client that proved who it is, or what to answer to one that did not. */
export type ClientAuthentication = { readonly client: Client } | { readonly problem: OAuthError };

/**
 * Client authentication at the token endpoint: `client_id` and `client_secret` in the form (specification,
 * "Authentication" 1), or HTTP Basic (RFC 6749, 2.3.1), never both (2.3). It looks at no code and no token, so that a
 * refused attempt burns nothing.
 * @param authorization the Authorization header, if any
 */
export function authenticateClient(
  settings: Settings,
  authorization: string | undefined,
  form: ReadonlyMap<string, string>,
): ClientAuthentication {
  const formId = form.get('client_id');
  const formSecret = form.get('client_secret');
  if (authorization === undefined) return compare(settings, formId, formSecret, false);
  const basic = basicCredentials(authorization);
  if (formSecret !== undefined) return refused(400, 'invalid_request', 'two ways of client authentication at once');
  if (basic === null || settings.basic === 'refuse') {
    return refused(401, 'invalid_client', 'this Authorization header is not accepted here', true);
  }
  if (formId !== undefined && formId !== basic.id) {
    return refused(400, 'invalid_request', 'client_id differs from the one in the Authorization header');
  }
  return compare(settings, basic.id, basic.secret, true);
}

function compare(settings: Settings, id = '', secret = '', challenge: boolean): ClientAuthentication {
  const client = settings.clients.get(id);
  const good = sameSecret(secret, client?.secret ?? settings.firstClient.secret);
  if (client !== undefined && good) return { client };
  return refused(401, 'invalid_client', 'client authentication failed', challenge);
}

function refused(
  status: OAuthError['status'],
  error: OAuthError['error'],
  description: string,
  challenge = false,
): ClientAuthentication {
  return { problem: { status, error, description, challenge } };
}
