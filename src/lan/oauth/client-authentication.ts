import type { FastifyRequest } from 'fastify';
import type { Appliance } from '../../core/appliances/appliance.ts';
import type { LanService } from '../../core/lan-service.ts';
import { verifySecretHash } from '../../system/secret-hash.ts';
import type { AssertionReplayCache } from './assertion-replay-cache.ts';
import type { ClientAssertionVerifier } from './client-assertion.ts';
import { type ClientAuthenticationResult, invalidClient, invalidRequest } from './client-authentication-result.ts';

/** RFC 7523, 2.2. */
const CLIENT_ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

/** Whether the host that a request names can only be this hub. */
export type OwnHostPredicate = (request: FastifyRequest) => boolean;

/** Authenticates the sender of a form. `deadline`: when the response is due, on the boot clock in ms. */
export type ClientAuthenticator = (
  request: FastifyRequest,
  form: ReadonlyMap<string, string>,
  deadline: number,
) => ClientAuthenticationResult | Promise<ClientAuthenticationResult>;

/**
 * Authenticates appliances by HTTP Basic (`client_secret_basic`), by a secret in the form (`client_secret_post`) or by
 * a signed assertion (`private_key_jwt`).
 * @param usedAssertions the assertions that this hub and earlier ones in this process have accepted
 */
export function createClientAuthenticator(
  service: LanService,
  isOwn: OwnHostPredicate,
  usedAssertions: AssertionReplayCache,
): ClientAuthenticator {
  // Few appliances have a key, and a hub without one does not need to load what checks signatures.
  let verifier: Promise<ClientAssertionVerifier> | null = null;
  const loadVerifier = async () => {
    const { ClientAssertionVerifier } = await import('./client-assertion.ts');
    return new ClientAssertionVerifier(service, usedAssertions);
  };
  const authenticate: ClientAuthenticator = async (request, form, deadline) => {
    const { authorization } = request.headers;
    const type = form.get('client_assertion_type');
    const assertion = form.get('client_assertion');
    const secret = form.get('client_secret');
    const hasAssertion = type !== undefined || assertion !== undefined;
    if (hasAssertion && (authorization !== undefined || secret !== undefined)) return invalidRequest(ONE_METHOD);
    if (authorization !== undefined) {
      const basic = authenticateBasic(service, authorization, form.get('client_id'));
      // Some clients send their credentials in both places, against RFC 6749, 2.3.
      if (secret === undefined || basic.kind !== 'authenticated') return basic;
      const posted = authenticateSecret(service, basic.appliance.clientId, secret);
      return posted.kind === 'authenticated' ? basic : invalidRequest(ONE_METHOD);
    }
    if (!hasAssertion) {
      const id = form.get('client_id');
      return id === undefined || secret === undefined
        ? missingCredentials({ client_id: id, client_secret: secret }, service.findClient(id ?? ''))
        : authenticateSecret(service, id, secret);
    }
    if (type === undefined || assertion === undefined) {
      return invalidRequest('send both client_assertion_type and client_assertion');
    }
    if (type !== CLIENT_ASSERTION_TYPE) return invalidClient(`client_assertion_type must be ${CLIENT_ASSERTION_TYPE}`);
    verifier ??= loadVerifier();
    const audiences = isOwn(request) ? acceptedAudiences(request) : [];
    return (await verifier).verify(assertion, form.get('client_id'), audiences, deadline);
  };
  return async (request, form, deadline) => {
    const result = await authenticate(request, form, deadline);
    // Another hub of the site may have added the appliance, or changed its credentials, a moment ago.
    const mayBeOutdated = result.kind === 'refused' && (await service.lookForNews(deadline));
    return mayBeOutdated ? authenticate(request, form, deadline) : result;
  };
}

/**
 * The accepted `aud` (RFC 7523, 3): the issuer at the host of the request, also that of the connection in its path, their
 * token endpoints, and the requested endpoint.
 */
function acceptedAudiences({ protocol, host, url }: FastifyRequest): string[] {
  const origin = `${protocol}://${host}`;
  const [path = ''] = url.split('?');
  const [connection = ''] = /^\/connections\/[^/]+/.exec(path) ?? [];
  const issuers = [origin, `${origin}${connection}`];
  return [...new Set([...issuers.flatMap((issuer) => [issuer, `${issuer}/oauth/token`]), `${origin}${path}`])];
}

const ONE_METHOD =
  'use only one client authentication method: the Authorization header, client_secret or client_assertion';

/** The credentials of each request in turn, for the reason that secret-hash.ts gives. */
const decoded = Buffer.alloc(16_384);

function authenticateBasic(
  service: LanService,
  authorization: string,
  id: string | undefined,
): ClientAuthenticationResult {
  const basic = /^basic +([a-z0-9+/]+=*)$/i.exec(authorization.trim())?.[1];
  if (basic === undefined) return invalidClient(NOT_BASIC);
  if (basic.length > decoded.length) return invalidClient(WRONG_CREDENTIALS);
  const pair = decoded.toString('utf8', 0, decoded.write(basic, 'base64'));
  const colon = pair.indexOf(':');
  if (colon === -1) return invalidClient(NOT_BASIC);
  const password = pair.slice(colon + 1);
  const decodedId = formDecode(pair.slice(0, colon));
  if (id !== undefined && id !== decodedId) {
    return invalidRequest('the client_id in the form differs from the one in the Authorization header');
  }
  const secret = formDecode(password);
  // Many libraries do not form-encode the secret, which matters if it contains "+" or "%".
  return secret === password
    ? authenticateSecret(service, decodedId, password)
    : authenticateSecret(service, decodedId, secret, password);
}

const WRONG_CREDENTIALS = 'the client_id or client_secret is wrong';

const HAS_KEY = 'it sends a client_secret, but authenticates with a key (private_key_jwt)';

const NOT_BASIC = 'the Authorization header is not that of HTTP Basic with a client_id and a client_secret';

/** What an appliance has to do whose library or configuration leaves its credentials out. */
function missingCredentials(
  parameters: Readonly<Record<string, string | undefined>>,
  appliance: Appliance | undefined,
): ClientAuthenticationResult {
  const missing = Object.entries(parameters).flatMap(([name, value]) => (value === undefined ? [`no ${name}`] : []));
  return invalidClient(
    `the request has ${missing.join(' and ')}: send client_id and client_secret, in the Authorization header (HTTP Basic) or in the form`,
    appliance,
  );
}

function authenticateSecret(
  service: LanService,
  id: string | undefined,
  ...secrets: readonly (string | undefined)[]
): ClientAuthenticationResult {
  const appliance = id === undefined ? undefined : service.findClient(id);
  // Takes the same time whether the client is unknown or the secret is wrong.
  const expected = appliance?.credentials.kind === 'secret' ? appliance.credentials.hash : null;
  let isValid = false;
  for (const secret of secrets) isValid = verifySecretHash(secret ?? '', expected) || isValid;
  if (isValid && appliance !== undefined) return { kind: 'authenticated', appliance };
  // Only the hub's owner learns that the client_id exists, and how its appliance authenticates.
  const reason = appliance?.credentials.kind === 'keys' ? HAS_KEY : WRONG_CREDENTIALS;
  return { ...invalidClient(WRONG_CREDENTIALS, appliance), reason };
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
