import type { FastifyRequest } from 'fastify';
import type { LanService } from '../../core/lan-service.ts';
import { isSecretOf } from '../../system/compare.ts';
import type { AssertionReplayCache } from './assertion-replay-cache.ts';
import { type ClientAuthentication, malformed, refused } from './authentication-outcome.ts';
import { ASSERTION_TYPE, ClientAssertions } from './client-assertion.ts';

/** Whether nobody but this hub can have been meant by the host that a request names. */
export type IsOwn = (request: FastifyRequest) => boolean;

/** Finds out who sends a request with this form. */
export type Authenticate = (
  request: FastifyRequest,
  form: ReadonlyMap<string, string>,
) => ClientAuthentication | Promise<ClientAuthentication>;

/**
 * Authenticates appliances by HTTP Basic (`client_secret_basic`), by a secret in the form (`client_secret_post`) or by a
 * signed assertion (`private_key_jwt`).
 * @param used the assertions that a hub before this one has seen
 */
export function clientAuthentication(service: LanService, isOwn: IsOwn, used?: AssertionReplayCache): Authenticate {
  const assertions = new ClientAssertions(service, used);
  return (request, form) => {
    const { authorization } = request.headers;
    const type = form.get('client_assertion_type');
    const assertion = form.get('client_assertion');
    const secret = form.get('client_secret');
    const asserts = type !== undefined || assertion !== undefined;
    if (Number(authorization !== undefined) + Number(secret !== undefined) + Number(asserts) > 1) {
      return malformed('authenticate in one way: by the Authorization header, a client_secret or a client_assertion');
    }
    if (authorization !== undefined) return byHeader(service, authorization, form.get('client_id'));
    if (!asserts) return bySecret(service, form.get('client_id'), secret);
    if (type === undefined || assertion === undefined) {
      return malformed('client_assertion_type and client_assertion come together');
    }
    if (type !== ASSERTION_TYPE) return refused(`the client_assertion_type is not ${ASSERTION_TYPE}`);
    return assertions.verify(assertion, form.get('client_id'), isOwn(request) ? audiences(request) : []);
  };
}

/** What an assertion may be meant for (RFC 7523, 3): the hub as it was asked, and the endpoints where it may be shown. */
function audiences({ host, url }: FastifyRequest): string[] {
  const issuer = `https://${host}`;
  return [...new Set([issuer, `${issuer}/oauth/token`, `${issuer}${url.split('?')[0]}`])];
}

function byHeader(service: LanService, authorization: string, id: string | undefined): ClientAuthentication {
  const basic = /^basic +([a-z0-9+/]+=*)$/i.exec(authorization.trim())?.[1];
  if (basic === undefined) return refused(WRONG_SECRET);
  const pair = Buffer.from(basic, 'base64').toString();
  const colon = pair.indexOf(':');
  if (colon === -1) return refused(WRONG_SECRET);
  const password = pair.slice(colon + 1);
  const decodedId = formDecoded(pair.slice(0, colon));
  if (id !== undefined && id !== decodedId) {
    return malformed('the client_id of the form is not the one of the Authorization header');
  }
  const secret = formDecoded(password);
  // Many a library sends a secret as it is, which makes a difference where its maker chose a "+" or a "%".
  return secret === password ? bySecret(service, decodedId, password) : bySecret(service, decodedId, secret, password);
}

const WRONG_SECRET = 'the client_id or client_secret is wrong';

function bySecret(
  service: LanService,
  id: string | undefined,
  ...secrets: readonly (string | undefined)[]
): ClientAuthentication {
  const appliance = id === undefined ? undefined : service.client(id);
  // In the same time for whatever is wrong.
  const expected = appliance?.credentials.kind === 'secret' ? appliance.credentials.hash : null;
  let right = false;
  for (const secret of secrets) right = isSecretOf(secret ?? '', expected) || right;
  return right && appliance !== undefined ? { kind: 'authenticated', appliance } : refused(WRONG_SECRET);
}

/** Both parts are form-encoded before they are joined (RFC 6749, 2.3.1). */
function formDecoded(text: string): string | undefined {
  if (!/[+%]/.test(text)) return text;
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}
