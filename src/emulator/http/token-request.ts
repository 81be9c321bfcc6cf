import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { TokenClaims } from '../bearer-tokens.ts';
import { authenticateClient, type ClientAuthentication } from './client-authentication.ts';
import { received } from './received.ts';

/** What a request to the token endpoint proves by the secrets in it, whatever it asks for. */
export interface TokenRequest {
  readonly authentication: ClientAuthentication;
  /** What its refresh token says, or null where there is none or none of ours. */
  readonly refreshToken: TokenClaims | null;
}

/** Lets {@link tokenRequest} say of every request to the token endpoint what it proves: its MACs are made once. */
export function readTokenRequests(app: FastifyInstance): void {
  app.decorateRequest('tokenRequest', null);
  app.addHook('preHandler', (request, _reply, done) => {
    const { endpoint, portal, authorization, form } = received(request);
    if (endpoint !== 'token' || form === null) return done();
    const token = form.get('refresh_token');
    request.setDecorator('tokenRequest', {
      authentication: authenticateClient(portal.settings, authorization, form),
      refreshToken: token === undefined ? null : portal.grants.open(token),
    });
    done();
  });
}

/** What a request to the token endpoint proves; null where a parameter in its form is repeated. */
export function tokenRequest(request: FastifyRequest): TokenRequest | null {
  return request.getDecorator<TokenRequest | null>('tokenRequest');
}
