import type { FastifyInstance } from 'fastify';
import { type Arrival, arrive } from '../code-arrival.ts';
import { received } from '../http/received.ts';
import { serve } from '../http/server.ts';
import { codePage } from '../pages/code.ts';
import { sendPage } from '../pages/layout.ts';
import { messagePage } from '../pages/message.ts';
import type { Client } from '../settings/settings.ts';

/** Specification, endpoint 6: brings the code from the authorization page to the helper and on to the client. */
export function serveCodeSet(app: FastifyInstance): void {
  serve(app, '/external/oauth2helper/code/set/:client_id', 'code/set', {
    async GET(request, reply) {
      const { portal, clientInPath, query } = received(request);
      const client = portal.settings.clients.get(clientInPath ?? '');
      if (client === undefined) return sendPage(reply, 404, messagePage(...INVALID));
      const arrival = await arrive(portal, client, query);
      if (arrival.kind === 'redirect') return reply.redirect(arrival.location, 302);
      if (arrival.kind === 'show') return sendPage(reply, 200, codePage(client.name, arrival.code));
      const [status, title, text] = message(arrival.kind, client);
      return sendPage(reply, status, messagePage(title, text));
    },
  });
}

const INVALID = ['This address is not valid', 'Start again from your device or application.'] as const;

function message(kind: Exclude<Arrival['kind'], 'redirect' | 'show'>, client: Client): [number, string, string] {
  switch (kind) {
    case 'delivered':
      return [200, 'Done', `${client.name} now gets its access. You can close this page.`];
    case 'refused':
      return [200, 'Refused', `${client.name} gets no access. You can close this page.`];
    case 'expired':
      return [400, 'Too late', 'This login has expired. Start again from your device or application.'];
    case 'invalid':
      return [400, ...INVALID];
  }
}
