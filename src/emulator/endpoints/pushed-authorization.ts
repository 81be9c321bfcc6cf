import type { FastifyInstance } from 'fastify';
import { invalidRequest, sendOAuthError } from '../http/oauth-error.ts';
import { requestContext } from '../http/request-context.ts';
import { addOAuth2Route } from '../http/routes.ts';
import { readClientRequest } from '../http/token-request.ts';
import { checkAuthorizationParameters } from '../oauth/oauth2-authorization-request.ts';
import { PUSHED_REQUEST_LIFETIME_SECONDS } from '../oauth/pushed-requests.ts';

/** Serves the endpoint at which clients push their authorization requests (RFC 9126). */
export function servePushedAuthorization(app: FastifyInstance): void {
  addOAuth2Route(app, '/oauth2/par', 'par', {
    async POST(request, reply) {
      const received = await readClientRequest(request, reply);
      if ('problem' in received) return sendOAuthError(reply, received.problem);
      const { portal } = requestContext(request);
      const { client, form, jkt } = received;
      if (form.has('request_uri')) return sendOAuthError(reply, invalidRequest('request_uri is not for this endpoint'));
      const parameters = new Map([...form, ['client_id', client.id]]);
      if (jkt !== null && (form.get('dpop_jkt') ?? jkt) !== jkt)
        return sendOAuthError(reply, invalidRequest('dpop_jkt is not the thumbprint of the proven key'));
      // RFC 9449, 10.1.
      if (jkt !== null) parameters.set('dpop_jkt', jkt);
      const checked = checkAuthorizationParameters(portal, parameters);
      if ('problem' in checked)
        return sendOAuthError(reply, invalidRequest(`redirect_uri must be a registered one: found ${checked.found}`));
      if ('location' in checked) {
        const { error, description } = checked;
        return sendOAuthError(reply, { status: 400, error, description });
      }
      const uri = portal.pushedRequests.add(portal.issuerName, client.id, parameters);
      return reply.code(201).send({ request_uri: uri, expires_in: PUSHED_REQUEST_LIFETIME_SECONDS });
    },
  });
}
