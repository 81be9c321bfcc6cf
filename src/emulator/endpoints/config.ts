import type { FastifyInstance } from 'fastify';
import { received } from '../http/received.ts';
import { notFound, serve } from '../http/server.ts';
import type { Portal } from '../portal.ts';
import { webAddress } from '../redirection.ts';
import type { Client } from '../settings/settings.ts';

/** Characters of a redirect_url: it travels inside the state, and that in a URL. */
const LONGEST_REDIRECT_URL = 2_000;

/**
 * Specification, endpoint 1. Bodies of any type are ignored. 404: unknown client. 400: a redirect_url that is no http(s)
 * URL, too long or refused by `refuseRedirectUrls`, or any redirect_url where the client's option says `refuse`.
 */
export function serveConfig(app: FastifyInstance): void {
  serve(app, '/external/oauth2helper/config/:client_id', 'config', {
    async POST(request, reply) {
      const { portal, clientInPath, query } = received(request);
      const client = portal.settings.clients.get(clientInPath ?? '');
      if (client === undefined) return notFound(reply);
      const wanted = query?.get('redirect_url');
      const redirectUrl = wanted === undefined ? null : webAddress(wanted);
      if (query === null || (wanted !== undefined && (redirectUrl === null || refuses(portal, client, wanted)))) {
        return reply.code(400).send({ error: 'invalid_request', error_description: 'redirect_url is not accepted' });
      }
      const state = await portal.states.issue(client.id, redirectUrl, portal.settings.stateLifetime);
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

function refuses(portal: Portal, client: Client, redirectUrl: string): boolean {
  if (client.redirectUrl === 'refuse' || redirectUrl.length > LONGEST_REDIRECT_URL) return true;
  const pattern = portal.settings.refuseRedirectUrls;
  return pattern !== null && new RegExp(pattern, 'u').test(redirectUrl);
}
