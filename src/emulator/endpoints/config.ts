import type { FastifyInstance } from 'fastify';
import { clientInPath, parameters, rawQuery } from '../http/request-form.ts';
import { notFound, serve } from '../http/server.ts';
import type { Portal } from '../portal.ts';
import { webAddress } from '../redirection.ts';

/** Characters of a redirect_url: it travels inside the state, and that in a URL. */
const LONGEST_REDIRECT_URL = 2_000;

/**
 * Specification, endpoint 1. Bodies of any type are ignored. 404: unknown client. 400: a redirect_url that is no http(s)
 * URL, or any redirect_url where the client's option says `refuse`.
 */
export function serveConfig(app: FastifyInstance, portal: Portal): void {
  serve(app, '/external/oauth2helper/config/:client_id', 'config', {
    async POST(request, reply) {
      const client = portal.settings.clients.get(clientInPath(request) ?? '');
      if (client === undefined) return notFound(reply);
      const wanted = parameters(rawQuery(request))?.get('redirect_url');
      const redirectUrl = wanted === undefined ? null : webAddress(wanted);
      const repeated = parameters(rawQuery(request)) === null;
      const refused = wanted !== undefined && (redirectUrl === null || client.redirectUrl === 'refuse');
      if (repeated || refused || (wanted?.length ?? 0) > LONGEST_REDIRECT_URL) {
        return reply.code(400).send({ error: 'invalid_request', error_description: 'redirect_url is not accepted' });
      }
      const state = await portal.states.issue(client.id, redirectUrl);
      const { base, frontend } = portal.origins();
      const id = encodeURIComponent(client.id);
      return reply.send({
        authorize_url: `${frontend}/sso/authorize?response_type=code&client_id=${id}&state=${state}`,
        code_url: `${base}/external/oauth2helper/code/get/${id}?state=${state}`,
        accesstoken_request_url: `${frontend}/sso/token`,
      });
    },
  });
}
