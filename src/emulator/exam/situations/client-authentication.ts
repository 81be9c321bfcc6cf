import { doesNotApply, fail } from '../judgement.ts';
import type { Sitting } from '../sitting.ts';
import type { GroupSituation } from '../situation.ts';
import type { WireRequest } from '../wire.ts';

const ENCODED =
  'RFC 6749, 2.3.1: "The client identifier is encoded using the "application/x-www-form-urlencoded" encoding algorithm …, and the encoded value is used as the username"';
const ONE_METHOD = 'RFC 6749, 2.3: "The client MUST NOT use more than one authentication method in each request"';
const DISCOVERED =
  'RFC 8414, 2: token_endpoint_auth_methods_supported: "client authentication methods supported by this token endpoint"';

/** How a request authenticates the client. */
function methodOf({ logged }: WireRequest): string {
  const methods = [
    ...(logged.authorization === 'basic' ? ['client_secret_basic'] : []),
    ...('client_secret' in logged.form ? ['client_secret_post'] : []),
    ...('client_assertion' in logged.form ? ['private_key_jwt'] : []),
  ];
  return methods.join(' and ') || 'none';
}

/** The first token request, once it has its response. Some clients begin with a login. */
async function firstRequest(sitting: Sitting): Promise<WireRequest> {
  return sitting.until('a token request', () => sitting.to('token').find(({ answeredAt }) => answeredAt !== null));
}

/** A server that accepts one method only, and says so in its metadata. */
function discovered(name: string, clientAuthentication: 'basic' | 'post', method: string): GroupSituation {
  return {
    name,
    source: DISCOVERED,
    right: `a client that reads the metadata uses ${method} if that is the only method in it`,
    settings: { clientAuthentication },
    async happens(sitting) {
      const request = await firstRequest(sitting);
      if (request.logged.status === 200) return `a token request with ${method}`;
      const used = methodOf(request);
      if (sitting.to('discovery').length === 0) doesNotApply(`the client reads no metadata, and uses ${used}`);
      // Some clients try the other method.
      const since = sitting.wire.requests.indexOf(request) + 1;
      const next = await sitting.unlessStopped(
        () =>
          sitting.to('token', since).find(({ logged }) => logged.status === 200) ??
          (sitting.to('token', since).length > 2 && request),
      );
      if (next === null || next === request) fail(`the metadata names only ${method}, and the client used ${used}`);
      return `a token request with ${method}, after one with ${used}`;
    },
  };
}

/** How the client authenticates at the token endpoint. */
export const CLIENT_AUTHENTICATION: readonly GroupSituation[] = [
  {
    name: 'special-characters',
    source: ENCODED,
    right: 'an ID and a secret with special characters arrive as they are: for HTTP Basic they are form-encoded first',
    client: { id: 'exam:client+1', secret: 'p%4&=:/+ ?"~#' },
    async happens(sitting) {
      const request = await firstRequest(sitting);
      const method = methodOf(request);
      if (request.logged.status !== 200) {
        fail(
          `with ${method}, an ID with ":" and "+", and a secret with "%", "&", "+" and a space, the answer was ${request.logged.status} ${request.logged.answer['error'] ?? ''}`,
        );
      }
      return `a token request with ${method}`;
    },
  },
  {
    name: 'one-method',
    source: ONE_METHOD,
    right: 'each request has the secret in one place: in the header or in the form, and never in the address',
    async happens(sitting) {
      await firstRequest(sitting);
      for (const request of sitting.to('token')) {
        if ('client_secret' in request.logged.query) fail('the client secret is in the address of the request');
        if (methodOf(request).includes(' and ')) fail(`one request has ${methodOf(request)}`);
      }
      return `${methodOf(await firstRequest(sitting))} in each request`;
    },
  },
  discovered('only-basic', 'basic', 'client_secret_basic'),
  discovered('only-post', 'post', 'client_secret_post'),
  {
    name: 'public-client',
    right: 'a client without a secret sends its client_id in the form, and no empty secret',
    source:
      'RFC 6749, 3.2.1: "A client MAY use the "client_id" request parameter to identify itself"; RFC 8414, 2: the method "none"',
    client: { id: 'public-client' },
    settings: { clientAuthentication: 'none' },
    async happens(sitting) {
      const request = await firstRequest(sitting);
      if (request.logged.status !== 200) {
        fail(
          `without a secret the client used ${methodOf(request)}, and the answer was ${request.logged.status} ${request.logged.answer['error'] ?? ''}`,
        );
      }
      return 'a token request with the client_id alone';
    },
  },
];
