import { timingSafeEqualText } from '../../system/secret-hash.ts';
import { ASSERTION_TYPE } from '../oauth/client-assertions.ts';
import { unverifiedClaim } from '../oauth/jwt.ts';
import type { EmulatedPortal } from '../portal.ts';
import type { Client } from '../settings/client-registry.ts';
import type { EffectiveSettings } from '../settings/effective-settings.ts';
import { authenticationError, invalidGrant, invalidRequest, type OAuthError } from './oauth-error.ts';
import { type BasicCredentials, basicCredentials, bearerToken } from './request-context.ts';

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
  let id = form.get('client_id');
  let secret = form.get('client_secret');
  if (authorization !== undefined) {
    if (secret !== undefined) return { problem: invalidRequest('more than one method of client authentication') };
    const basic = basicCredentials(authorization);
    if (basic === null || settings.basic === 'refuse')
      return authenticationError('this Authorization header is not accepted', true);
    if (id !== undefined && id !== basic.id)
      return { problem: invalidRequest('client_id differs from the one in the Authorization header') };
    ({ id, secret } = basic);
  }
  const client = settings.clients.get(id ?? '');
  if (isSecretOf(client, secret ?? '')) return { client };
  const reason = client === undefined ? unregistered(settings, id) : wrongSecret(client, secret);
  return authenticationError('client authentication failed', authorization !== undefined, reason);
}

function unregistered({ clients }: EffectiveSettings, id: string | undefined): string {
  return `the client is not registered: found ${clients.describeUnknown(id)}`;
}

/** Why a client does not have this secret. The secret is not shown. */
function wrongSecret({ id, secret }: Client, found: string | undefined): string {
  if (secret === null) return `the client ${id} is registered without a secret`;
  return found === undefined ? 'no secret was sent' : `the secret is not that of the client ${id}`;
}

/** Whether a client has this secret. A client without one has none, and an unknown client takes the same time. */
function isSecretOf(client: Client | undefined, secret: string): client is Client {
  const isEqual = timingSafeEqualText(secret, client?.secret ?? 'no secret');
  return isEqual && client !== undefined && client.secret !== null;
}

/** What a request contains to authenticate its client. */
interface Credentials {
  readonly id: string | undefined;
  /** In the form. */
  readonly secret: string | undefined;
  /** In the Authorization header. */
  readonly basic: BasicCredentials | undefined;
  readonly assertion: string | undefined;
}

/**
 * Client authentication at the endpoints below `/oauth2/`, by the setting `clientAuthentication`. It does not look at
 * codes and tokens, so that a failed attempt uses up none.
 * @param url the path of the request, which may be the audience of an assertion
 */
export function authenticateOAuth2Client(
  portal: EmulatedPortal,
  url: string,
  authorization: string | undefined,
  form: ReadonlyMap<string, string>,
): ClientAuthentication | Promise<ClientAuthentication> {
  const { settings } = portal;
  if (settings.revocationAuthentication === 'bearer' && url.split('?')[0] === REVOCATION_PATH)
    return clientOfAccessToken(portal, authorization);
  const challenge = authorization !== undefined;
  const basic = authorization === undefined ? undefined : basicCredentials(authorization);
  if (basic === null) return authenticationError('this Authorization header is not accepted', challenge);
  const credentials = {
    id: form.get('client_id'),
    secret: form.get('client_secret'),
    basic,
    assertion: form.get('client_assertion'),
  };
  const { secret, assertion } = credentials;
  const isOne = [secret, basic, assertion].filter((method) => method !== undefined).length < 2;
  const isTwoAllowed = settings.clientAuthentication === 'both' || settings.twoAuthenticationMethods;
  const mayBeBoth = isTwoAllowed && assertion === undefined;
  if (!isOne && !mayBeBoth) return { problem: invalidRequest('more than one method of client authentication') };
  if (assertion !== undefined) return verifyAssertion(portal, url, form, credentials.id, assertion);
  const isAlone = secret === undefined && basic === undefined;
  const waived = isAlone ? waivedAuthentication(portal, url, form) : 'same';
  if (waived === 'nothing' && credentials.id === undefined) return clientOfRefreshToken(portal, form);
  const id = credentials.id ?? credentials.basic?.id ?? '';
  if (credentials.basic !== undefined && credentials.basic.id !== id) {
    return { problem: invalidRequest('client_id differs from the one in the Authorization header') };
  }
  const client = settings.clients.get(id);
  if (client === undefined) return authenticationError(unregistered(settings, id), challenge);
  if (waived !== 'same') return { client };
  const { clientAuthentication } = settings;
  const problem = rejectCredentials(client, credentials, clientAuthentication === 'any' ? null : clientAuthentication);
  return problem === null ? { client } : authenticationError(problem, challenge);
}

/** What a request without a secret needs instead, by the settings for its operation. */
function waivedAuthentication({ settings }: EmulatedPortal, url: string, form: ReadonlyMap<string, string>) {
  const grantType = form.get('grant_type');
  if (grantType === 'refresh_token') return settings.refreshAuthentication;
  const isDevice = url.startsWith('/oauth2/device_authorization') || grantType?.endsWith('device_code') === true;
  return isDevice ? settings.deviceAuthentication : 'same';
}

/** The client that a refresh token was issued to, for a refresh that does not name it. */
function clientOfRefreshToken(
  { grants, settings }: EmulatedPortal,
  form: ReadonlyMap<string, string>,
): ClientAuthentication {
  const claims = grants.verifyRefreshToken(form.get('refresh_token') ?? '');
  const client = settings.clients.get(grants.find(claims?.grantId ?? '')?.clientId ?? '');
  return client === undefined ? { problem: invalidGrant('unknown token') } : { client };
}

/** The path of revocations. */
const REVOCATION_PATH = '/oauth2/revoke';

/** The client that the bearer token of a request was issued to. */
function clientOfAccessToken({ grants, settings }: EmulatedPortal, authorization = ''): ClientAuthentication {
  const token = bearerToken(authorization);
  const found = token === null ? null : grants.inspectAccessToken(token, settings);
  const client = settings.clients.get(found?.grant.clientId ?? '');
  return client === undefined ? authenticationError('use a valid access token as bearer') : { client };
}

/** @param method null for the one that the client was registered for @returns why the credentials are refused, or null */
function rejectCredentials(client: Client, credentials: Credentials, method: string | null): string | null {
  const { secret, basic } = credentials;
  const inForm = secret !== undefined;
  // Some public clients send HTTP Basic with an empty secret.
  const inHeader = basic !== undefined && !(basic.secret === '' && client.secret === null);
  const isCorrect = (one: string | undefined) => isSecretOf(client, one ?? '');
  switch (method) {
    case 'post':
      if (!inForm) return 'use client_id and client_secret in the form';
      return isCorrect(secret) ? null : wrongSecret(client, secret);
    case 'basic':
      if (!inHeader) return 'use HTTP Basic';
      return isCorrect(basic?.secret) ? null : wrongSecret(client, basic?.secret);
    case 'both':
      if (!inHeader || !inForm || credentials.id === undefined) return 'use HTTP Basic and the form together';
      return isCorrect(basic?.secret) && isCorrect(secret) ? null : wrongSecret(client, secret);
    case 'none':
      return inHeader || inForm ? 'use client_id alone, without a secret' : null;
    case 'private_key_jwt':
      return 'use client_assertion';
    default:
      if (client.secret === null)
        return client.jwks === null ? rejectCredentials(client, credentials, 'none') : 'use client_assertion';
      if (!inForm && !inHeader) return 'no secret was sent: use HTTP Basic, or client_id and client_secret in the form';
      return rejectCredentials(client, credentials, inHeader ? 'basic' : 'post');
  }
}

/** RFC 7523, 3. The audience is the issuer, the token endpoint, or the endpoint of the request. */
async function verifyAssertion(
  portal: EmulatedPortal,
  url: string,
  form: ReadonlyMap<string, string>,
  id: string | undefined,
  assertion: string,
): Promise<ClientAuthentication> {
  const { clientAuthentication, clients } = portal.settings;
  if (form.get('client_assertion_type') !== ASSERTION_TYPE) {
    return { problem: invalidRequest(`client_assertion_type must be ${ASSERTION_TYPE}`) };
  }
  const client = clients.get(id ?? unverifiedClaim(assertion, 'iss') ?? '');
  const isAllowed = clientAuthentication === 'any' || clientAuthentication === 'private_key_jwt';
  if (client === undefined) return authenticationError(unregistered(portal.settings, id));
  if (!isAllowed) return authenticationError(`client_assertion is not accepted, but ${clientAuthentication}`);
  const issuer = portal.issuer();
  const audiences = [issuer, `${issuer}/oauth2/token`, `${issuer}${url.split('?')[0]}`];
  const problem = await portal.clientAssertions.reject(client, assertion, audiences);
  return problem === null ? { client } : authenticationError(problem);
}
