import type { FastifyInstance, FastifyReply } from 'fastify';
import type { HandOut } from '../../core/hand-out.ts';
import type { LanService } from '../../core/lan-service.ts';
import { noStore, sendError } from './errors.ts';
import { type ClientRequest, type FormGate, serveForm } from './form-endpoint.ts';

/** The token endpoint (RFC 6749, 3.2). */
export function serveToken(app: FastifyInstance, service: LanService, gate: FormGate): void {
  serveForm(app, '/oauth/token', gate, (request) => token(service, request));
}

async function token(service: LanService, { appliance, form, request, reply }: ClientRequest): Promise<FastifyReply> {
  const grantType = form.get('grant_type');
  if (grantType === undefined) return sendError(reply, 'invalid_request', 'grant_type is missing');
  if (grantType !== 'client_credentials') {
    return sendError(reply, 'unsupported_grant_type', 'the hub knows grant_type client_credentials');
  }
  const handOut = await service.handOut(appliance, { scope: form.get('scope') ?? null, atLeast: 0 });
  return answer(reply, handOut, appliance.name, `https://${request.host}/`);
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
