import type { FastifyReply, FastifyRequest } from 'fastify';
import type { IssuedGrant } from '../oauth/issued-grants.ts';
import { bearerToken, requestContext } from './request-context.ts';

/**
 * The grant of the bearer token in the Authorization header, if it is valid. Otherwise null, and the response is sent
 * (RFC 6750, 3): 401 with a challenge, which names an error only if a token was sent, or 400 for a malformed header.
 * @param metadata the address of the metadata of the protected resource (RFC 9728, 5.1), if it has any
 */
export function authenticateBearer(
  request: FastifyRequest,
  reply: FastifyReply,
  metadata?: string,
): { readonly grant: IssuedGrant; readonly token: string } | null {
  const { portal, authorization: header = '' } = requestContext(request);
  const token = bearerToken(header);
  const grant = token === null ? null : portal.grants.authenticate(token, portal.settings);
  if (grant !== null && token !== null) return { grant, token };
  const resource = metadata === undefined ? '' : `, resource_metadata="${metadata}"`;
  const challenge = (error: string) => reply.header('www-authenticate', `Bearer realm="portal"${error}${resource}`);
  const status = Number(portal.settings.invalidTokenStatus);
  if (token !== null) challenge(', error="invalid_token"').code(status).send({ error: 'invalid_token' });
  else if (!/^bearer\b/i.test(header)) challenge('').code(401).send({ error: 'unauthorized' });
  else challenge(', error="invalid_request"').code(400).send({ error: 'invalid_request' });
  return null;
}
