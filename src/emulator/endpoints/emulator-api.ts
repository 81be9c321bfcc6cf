import type { FastifyInstance } from 'fastify';
import * as v from 'valibot';
import { bodyText, mediaType } from '../http/request-form.ts';
import { serve } from '../http/server.ts';
import { LoginError, login } from '../login.ts';
import type { Portal } from '../portal.ts';

/**
 * The emulator's own API, under a path that no portal has:
 * - `POST /_emulator/login` `{"state", "user", "deny"?}`: 200 `{"location"}`, or 400 with a message that names the member.
 *   It takes only application/json, which no foreign web page can send unasked.
 */
export function serveEmulatorApi(app: FastifyInstance, portal: Portal): void {
  serve(app, '/_emulator/login', null, {
    async POST(request, reply) {
      const body = mediaType(request) === 'application/json' ? readLogin(bodyText(request)) : NO_JSON;
      if (typeof body === 'string') return reply.code(400).send({ error: 'invalid_request', message: body });
      try {
        return reply.send(await login(portal, body));
      } catch (error) {
        if (!(error instanceof LoginError)) throw error;
        return reply.code(400).send({ error: 'invalid_request', message: error.message });
      }
    },
  });
}

const NO_JSON = 'allowed is an application/json object with the members state, user, deny (optional)';

/** What `POST /_emulator/login` takes. */
export const LoginBody = v.strictObject({
  state: v.string(),
  user: v.optional(v.string()),
  deny: v.optional(v.boolean()),
});

/** The request, or what is wrong with it. */
function readLogin(text: string): v.InferOutput<typeof LoginBody> | string {
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), LoginBody), text);
  if (parsed.success) return parsed.output;
  const [issue] = parsed.issues;
  const member = v.getDotPath(issue);
  return member === null ? NO_JSON : `${member.slice(0, 100)}: expected ${issue.expected}; ${NO_JSON}`;
}
