import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { HandOut } from '../core/hand-out.ts';
import type { LanService } from '../core/lan-service.ts';
import { FormError, parseForm } from '../system/form.ts';
import { authenticateClient } from './client-authentication.ts';
import { noStore, sendError } from './oauth-error.ts';

const FORM = 'application/x-www-form-urlencoded';
/** Bytes of a token request. */
const LARGEST_FORM = 16 * 1024;

/** The OAuth authorization server that appliances talk to: metadata and token endpoint. */
export function serveOAuth(app: FastifyInstance, service: LanService): void {
  app.addContentTypeParser(FORM, { parseAs: 'string', bodyLimit: LARGEST_FORM }, (_request, body, done) =>
    done(null, body),
  );
  app.removeContentTypeParser(['application/json', 'text/plain']);

  // RFC 8414. The issuer is the address that was asked: its Host has been checked by now.
  app.get('/.well-known/oauth-authorization-server', async ({ host }) => ({
    issuer: `https://${host}`,
    token_endpoint: `https://${host}/oauth/token`,
    grant_types_supported: ['client_credentials'],
    response_types_supported: [],
    token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
  }));

  app.post('/oauth/token', {
    errorHandler(error: Error & { statusCode?: number }, _request, reply) {
      if (error.statusCode === 413) return sendError(reply, 'invalid_request', 'the request is too large', {}, 413);
      if (error.statusCode === 415) return sendError(reply, 'invalid_request', `send the request as ${FORM}`);
      if ((error.statusCode ?? 500) < 500) return sendError(reply, 'invalid_request', 'the request can not be read');
      throw error;
    },
    handler: (request, reply) => token(service, request, reply),
  });
}

async function token(service: LanService, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  let form: ReadonlyMap<string, string>;
  try {
    form = parseForm(typeof request.body === 'string' ? request.body : '');
  } catch (error) {
    if (error instanceof FormError) return sendError(reply, 'invalid_request', error.message);
    throw error;
  }
  const client = authenticateClient(service, request.headers.authorization, form);
  if (client.kind === 'malformed') return sendError(reply, 'invalid_request', client.description);
  if (client.kind === 'refused') {
    reply.header('www-authenticate', 'Basic realm="latchkey", charset="UTF-8"');
    return sendError(reply, 'invalid_client', 'the client_id or client_secret is wrong');
  }
  const grantType = form.get('grant_type');
  if (grantType === undefined) return sendError(reply, 'invalid_request', 'grant_type is missing');
  if (grantType !== 'client_credentials') {
    return sendError(reply, 'unsupported_grant_type', 'the hub knows grant_type client_credentials');
  }
  const { name } = client.appliance;
  return answer(
    reply,
    await service.handOut(client.appliance, form.get('scope') ?? null),
    name,
    `https://${request.host}/`,
  );
}

function answer(reply: FastifyReply, handOut: HandOut, name: string, page: string): FastifyReply {
  switch (handOut.kind) {
    case 'token': {
      const { accessToken, expiresIn, scope } = handOut;
      return noStore(reply).send({
        access_token: accessToken.reveal(),
        token_type: 'Bearer',
        expires_in: expiresIn,
        ...(scope === null ? {} : { scope }),
      });
    }
    case 'not_paired':
      return sendError(reply, 'invalid_grant', `${name} is not paired with the portal`, { error_uri: page });
    case 'needs_pairing':
      return sendError(reply, 'invalid_grant', `${name} must be paired again`, { error_uri: page });
    case 'other_scope': {
      const has = handOut.scope === null ? 'no scope: leave scope out' : `scope ${handOut.scope}`;
      return sendError(reply, 'invalid_scope', `the grant of ${name} has ${has}`);
    }
    case 'unavailable':
      reply.header('retry-after', handOut.retryAfter);
      return sendError(
        reply,
        'temporarily_unavailable',
        'the portal is out of reach, and the token at hand has run out',
      );
  }
}
