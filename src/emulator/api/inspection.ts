import type { FastifyInstance } from 'fastify';
import * as v from 'valibot';
import { findings } from '../audit/findings.ts';
import { readJson, snakeCased } from '../http/json-body.ts';
import { received } from '../http/received.ts';
import { pathParameter } from '../http/request-form.ts';
import { badRequest, notFound, serve } from '../http/routes.ts';
import type { RequestLog } from '../log/request-log.ts';
import type { Grant } from '../oauth/grants.ts';
import { waitingLogins } from '../oauth/helper-runs.ts';
import type { Portal } from '../portal.ts';

/**
 * What the emulator has seen and given, and the end of it:
 * - `GET /_emulator/requests?since=<number>`: `{"requests": […]}`, see `LoggedRequest`.
 * - `GET /_emulator/logins`: `{"logins": […]}`, see `WaitingLogin`.
 * - `GET /_emulator/grants`: `{"grants": […]}`, no tokens.
 * - `POST /_emulator/grants/{id}/revoke` `{"what": "grant" | "access_tokens"}`: 200 with the grant, or 404.
 * - `GET /_emulator/findings`: see `Findings`, under snake_case names.
 * - `POST /_emulator/reset` `{}`: 200 `{}`.
 */
export function serveInspection(
  app: FastifyInstance,
  portal: Portal,
  log: RequestLog,
  reset: () => Promise<void>,
): void {
  serve(app, '/_emulator/requests', null, {
    async GET(request, reply) {
      const since = received(request).query?.get('since') ?? '0';
      if (!/^\d{1,15}$/.test(since)) {
        const message = `since: found ${JSON.stringify(since.slice(0, 100))}; allowed is a whole number`;
        return badRequest(reply, message);
      }
      return reply.send({ requests: log.values(Number(since)) });
    },
  });
  serve(app, '/_emulator/logins', null, {
    GET: async (_request, reply) => reply.send({ logins: waitingLogins(portal.runs, portal.now()) }),
  });
  serve(app, '/_emulator/grants', null, {
    GET: async (_request, reply) => reply.send({ grants: portal.grants.all().map(grantAnswer) }),
  });
  serve(app, '/_emulator/grants/:grant_id/revoke', null, {
    async POST(request, reply) {
      const body = readJson(request, Revocation);
      if ('problem' in body) return badRequest(reply, body.problem);
      const grant = portal.grants.find(pathParameter(request, 'grant_id') ?? '');
      if (grant === undefined) return notFound(reply);
      portal.grants.revoke(grant, body.value.what);
      return reply.send(grantAnswer(grant));
    },
  });
  serve(app, '/_emulator/findings', null, {
    GET: async (_request, reply) => reply.send(snakeCased(findings(portal))),
  });
  serve(app, '/_emulator/reset', null, {
    async POST(request, reply) {
      const body = readJson(request, Reset);
      if ('problem' in body) return badRequest(reply, body.problem);
      await reset();
      return reply.send({});
    },
  });
}

/** The body of `POST /_emulator/grants/{id}/revoke`. */
export const Revocation = v.strictObject({
  what: v.optional(v.picklist(['grant', 'access_tokens'], 'is "grant" or "access_tokens"'), 'grant'),
});

/** The body of `POST /_emulator/reset`: nothing so far. */
export const Reset = v.strictObject({});

/** A grant as the API tells it: no tokens. */
export interface GrantAnswer extends Pick<Grant, 'id' | 'user' | 'scope' | 'generation' | 'revoked'> {
  /** The client's id. */
  readonly client: string;
  /** When the first and the newest tokens were issued, RFC 3339. */
  readonly issued: string;
  readonly refreshed: string;
}

function grantAnswer({ id, clientId, user, scope, generation, createdAt, refreshedAt, revoked }: Grant): GrantAnswer {
  const [issued, refreshed] = [new Date(createdAt).toISOString(), new Date(refreshedAt).toISOString()];
  return { id, client: clientId, user, scope, generation, issued, refreshed, revoked };
}
