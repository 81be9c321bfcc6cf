import type { FastifyInstance } from 'fastify';
import type { HelperRun } from '../helper-runs.ts';
import { received } from '../http/received.ts';
import { notFound, serve } from '../http/server.ts';
import type { Portal } from '../portal.ts';

/**
 * Specification, endpoint 2. One and the same 404 answers an unknown client, a state that is forged, foreign or expired,
 * and a login that has not happened. A code is served while it lives and is unused; whether the portal serves it after
 * the exchange is not known, so that is an option.
 */
export function serveCodeGet(app: FastifyInstance): void {
  serve(app, '/external/oauth2helper/code/get/:client_id', 'code/get', {
    async GET(request, reply) {
      const { portal, clientInPath, query } = received(request);
      const client = portal.settings.clients.get(clientInPath ?? '');
      const state = query?.get('state');
      if (client === undefined || state === undefined) return notFound(reply);
      const checked = await portal.states.check(state, client.id);
      if (checked.kind !== 'good') return notFound(reply);
      const run = portal.runs.of(checked.state);
      const code = codeOf(portal, run);
      run.polls.push({ at: portal.now(), status: code === null ? 404 : 200 });
      return code === null ? notFound(reply) : reply.send({ code });
    },
  });
}

function codeOf(portal: Portal, run: HelperRun): string | null {
  const code = run.code === null ? undefined : portal.codes.find(run.code);
  if (code === undefined || !portal.codes.lives(code, portal.settings.codeLifetime)) return null;
  return code.grantId === null || portal.settings.codeUrlAfterExchange === 'served' ? code.value : null;
}
