import type { FastifyReply, FastifyRequest } from 'fastify';
import { ASSERTION_ALGORITHMS } from '../oauth/client-assertions.ts';
import type { InspectedToken } from '../oauth/issued-grants.ts';
import { isIssuedBy } from '../oauth/issuers.ts';
import { isProofRequired, verifyProof } from './dpop.ts';
import { accessToken, requestContext } from './request-context.ts';

/**
 * What the access token in the Authorization header stands for, if it is valid, and if the request proves the key that it is
 * bound to (RFC 9449, 7.1). Otherwise null, and the response is sent (RFC 6750, 3): 401 with a challenge, which names an
 * error only if a token was sent, or 400 for a malformed header. The body says why a token is not valid.
 * @param metadata the address of the metadata of the protected resource (RFC 9728, 5.1), if it has any
 */
export async function authenticateBearer(
  request: FastifyRequest,
  reply: FastifyReply,
  metadata?: string,
): Promise<(InspectedToken & { readonly token: string }) | null> {
  const { portal, endpoint, authorization: header = '' } = requestContext(request);
  const { grants, settings } = portal;
  const { scheme, token } = accessToken(header) ?? { scheme: null, token: '' };
  const valid = grants.inspectAccessToken(token, settings);
  // The API accepts the tokens of all issuers.
  const found = valid !== null && (endpoint === 'whoami' || isIssuedBy(portal, valid.grant)) ? valid : null;
  const proof = scheme === 'dpop' ? await verifyProof(request, reply, token) : null;
  const isBound = found?.jkt !== undefined;
  const isProven = proof !== null && 'jkt' in proof && proof.jkt === found?.jkt;
  if (found !== null && (isBound ? isProven : scheme === 'bearer')) return { ...found, token };
  const isDpop = scheme === 'dpop' || isBound || isProofRequired(settings);
  const challenge = (error: string | null) =>
    reply.header(
      'www-authenticate',
      [
        `${isDpop ? 'DPoP' : 'Bearer'} realm="portal"`,
        ...(error === null ? [] : [`error="${error}"`]),
        ...(isDpop ? [`algs="${ASSERTION_ALGORITHMS.join(' ')}"`] : []),
        ...(metadata === undefined ? [] : [`resource_metadata="${metadata}"`]),
      ].join(', '),
    );
  const send = (status: number, error: string, description?: string) =>
    challenge(error).code(status).send({ error, error_description: description });
  const problem = () => {
    if (valid === null) return grants.explainAccessToken(token);
    if (found === null) return 'the access token is of another issuer';
    return isBound
      ? 'the access token is bound to a key, which the request does not prove'
      : 'the access token is bound to no key: send it as Bearer';
  };
  if (found !== null && proof !== null && 'refused' in proof) send(401, proof.refused);
  else if (scheme !== null) send(Number(settings.invalidTokenStatus), 'invalid_token', problem());
  else if (/^(bearer|dpop)\b/i.test(header)) send(400, 'invalid_request');
  else challenge(null).code(401).send({ error: 'unauthorized' });
  return null;
}
