import type { FastifyRequest } from 'fastify';
import type { LanService } from '../../core/lan-service.ts';
import { verifySecretHash } from '../../system/secret-hash.ts';
import type { AssertionReplayCache } from './assertion-replay-cache.ts';
import { CLIENT_ASSERTION_TYPE, ClientAssertionVerifier } from './client-assertion.ts';
import { type ClientAuthenticationResult, invalidClient, invalidRequest } from './client-authentication-result.ts';

/** Whether nobody but this hub can have been meant by the host that a request names. */
export type IsVerifiedOwnHost = (request: FastifyRequest) => boolean;

/** Finds out who sends a request with this form. */
export type ClientAuthenticator = (
  request: FastifyRequest,
  form: ReadonlyMap<string, string>,
) => ClientAuthenticationResult | Promise<ClientAuthenticationResult>;

/**
 * Authenticates appliances by HTTP Basic (`client_secret_basic`), by a secret in the form (`client_secret_post`) or by a
 * signed assertion (`private_key_jwt`).
 * @param used the assertions that a hub before this one has seen
 */
export function createClientAuthenticator(
  service: LanService,
  isOwn: IsVerifiedOwnHost,
  used?: AssertionReplayCache,
): ClientAuthenticator {
  const assertions = new ClientAssertionVerifier(service, used);
  return (request, form) => {
    const { authorization } = request.headers;
    const type = form.get('client_assertion_type');
    const assertion = form.get('client_assertion');
    const secret = form.get('client_secret');
    const asserts = type !== undefined || assertion !== undefined;
    if (Number(authorization !== undefined) + Number(secret !== undefined) + Number(asserts) > 1) {
      return invalidRequest(
        'authenticate in one way: by the Authorization header, a client_secret or a client_assertion',
      );
    }
    if (authorization !== undefined) return authenticateBasic(service, authorization, form.get('client_id'));
    if (!asserts) return authenticateSecret(service, form.get('client_id'), secret);
    if (type === undefined || assertion === undefined) {
      return invalidRequest('client_assertion_type and client_assertion come together');
    }
    if (type !== CLIENT_ASSERTION_TYPE)
      return invalidClient(`the client_assertion_type is not ${CLIENT_ASSERTION_TYPE}`);
    return assertions.verify(assertion, form.get('client_id'), isOwn(request) ? acceptedAudiences(request) : []);
  };
}

/** What an assertion may be meant for (RFC 7523, 3): the hub as it was asked, and the endpoints where it may be shown. */
function acceptedAudiences({ host, url }: FastifyRequest): string[] {
  const issuer = `https://${host}`;
  return [...new Set([issuer, `${issuer}/oauth/token`, `${issuer}${url.split('?')[0]}`])];
}

function authenticateBasic(
  service: LanService,
  authorization: string,
  id: string | undefined,
): ClientAuthenticationResult {
  const basic = /^basic +([a-z0-9+/]+=*)$/i.exec(authorization.trim())?.[1];
  if (basic === undefined) return invalidClient(WRONG_CREDENTIALS);
  const pair = Buffer.from(basic, 'base64').toString();
  const colon = pair.indexOf(':');
  if (colon === -1) return invalidClient(WRONG_CREDENTIALS);
  const password = pair.slice(colon + 1);
  const decodedId = formDecode(pair.slice(0, colon));
  if (id !== undefined && id !== decodedId) {
    return invalidRequest('the client_id of the form is not the one of the Authorization header');
  }
  const secret = formDecode(password);
  // Many a library sends a secret as it is, which makes a difference where its maker chose a "+" or a "%".
  return secret === password
    ? authenticateSecret(service, decodedId, password)
    : authenticateSecret(service, decodedId, secret, password);
}

const WRONG_CREDENTIALS = 'the client_id or client_secret is wrong';

function authenticateSecret(
  service: LanService,
  id: string | undefined,
  ...secrets: readonly (string | undefined)[]
): ClientAuthenticationResult {
  const appliance = id === undefined ? undefined : service.findClient(id);
  // In the same time for whatever is wrong.
  const expected = appliance?.credentials.kind === 'secret' ? appliance.credentials.hash : null;
  let right = false;
  for (const secret of secrets) right = verifySecretHash(secret ?? '', expected) || right;
  return right && appliance !== undefined ? { kind: 'authenticated', appliance } : invalidClient(WRONG_CREDENTIALS);
}

/** Both parts are form-encoded before they are joined (RFC 6749, 2.3.1). */
function formDecode(text: string): string | undefined {
  if (!/[+%]/.test(text)) return text;
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}
