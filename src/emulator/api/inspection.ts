import * as v from 'valibot';
import { Findings, findings, PollFindings } from '../audit/findings.ts';
import { instant, renamed, snakeCase, snakeCased } from '../http/json-body.ts';
import { LoggedRequest } from '../http/logged-request.ts';
import { received } from '../http/received.ts';
import { pathParameter } from '../http/request-form.ts';
import { refusal } from '../http/routes.ts';
import type { Grant } from '../oauth/grants.ts';
import { WaitingLogin, waitingLogins } from '../oauth/helper-runs.ts';
import { type ApiOperation, NotFound, refused, takingJson } from './operation.ts';

/** The number of a request. */
const NUMBER = /^\d{1,15}$/;

/** A grant as the API tells it: no tokens. */
const GrantBody = v.strictObject({
  id: v.string(),
  client: v.string(),
  user: v.string(),
  scope: v.nullable(v.string()),
  generation: v.pipe(v.number(), v.description('The newest pair of tokens, from 1')),
  issued: instant(),
  refreshed: instant(),
  revoked: v.boolean(),
});
export type GrantAnswer = v.InferOutput<typeof GrantBody>;

/** The findings under the API's names. */
const FindingsBody = v.strictObject({
  ...renamed(Findings.entries, snakeCase),
  polls: v.array(v.strictObject(renamed(PollFindings.entries, snakeCase))),
});

/** What the emulator has seen and given, the end of it, and how all of this is called. */
export const inspectionOperations: readonly ApiOperation[] = [
  {
    method: 'get',
    path: '/_emulator/requests',
    id: 'listRequests',
    summary: 'What clients sent and were answered, the oldest first',
    query: v.strictObject({
      since: v.optional(v.pipe(v.string(), v.regex(NUMBER), v.description('Only requests with a higher number'))),
    }),
    answers: {
      200: {
        description: 'Secrets are masked, unless the emulator was told to show them',
        body: v.strictObject({ requests: v.array(LoggedRequest) }),
      },
      400: refused,
    },
    handle({ log }, request, reply) {
      const since = received(request).query?.get('since') ?? '0';
      if (NUMBER.test(since)) return { requests: log.values(Number(since)) };
      return refusal(reply, `since: found ${JSON.stringify(since.slice(0, 100))}; allowed is a whole number`);
    },
  },
  {
    method: 'get',
    path: '/_emulator/logins',
    id: 'listLogins',
    summary: 'Login pages that are open and wait for somebody',
    answers: { 200: { description: 'The oldest first', body: v.strictObject({ logins: v.array(WaitingLogin) }) } },
    handle: ({ portal }) => ({ logins: waitingLogins(portal.runs, portal.now()) }),
  },
  {
    method: 'get',
    path: '/_emulator/grants',
    id: 'listGrants',
    summary: 'Grants, without their tokens; the one that was refreshed longest ago first',
    answers: { 200: { description: 'All grants', body: v.strictObject({ grants: v.array(GrantBody) }) } },
    handle: ({ portal }) => ({ grants: portal.grants.all().map(grantAnswer) }),
  },
  takingJson({
    method: 'post',
    path: '/_emulator/grants/{grant_id}/revoke',
    id: 'revokeGrant',
    summary: 'Revokes a grant with all its tokens, or only the access tokens issued so far',
    params: v.strictObject({ grant_id: v.string() }),
    json: v.strictObject({
      what: v.optional(v.picklist(['grant', 'access_tokens'], 'is "grant" or "access_tokens"'), 'grant'),
    }),
    answers: {
      200: { description: 'The grant', body: GrantBody },
      400: refused,
      404: { description: 'There is no such grant', body: NotFound },
    },
    handle({ portal }, { what }, request) {
      const grant = portal.grants.find(pathParameter(request, 'grant_id') ?? '');
      if (grant === undefined) return null;
      portal.grants.revoke(grant, what);
      return grantAnswer(grant);
    },
  }),
  {
    method: 'get',
    path: '/_emulator/findings',
    id: 'readFindings',
    summary: 'What the author of a client wants to know; all lists but `polls` are empty for a good client',
    answers: { 200: { description: 'Since the start or the last reset', body: FindingsBody } },
    handle: ({ portal }) => snakeCased(findings(portal)),
  },
  takingJson({
    method: 'post',
    path: '/_emulator/reset',
    id: 'reset',
    summary: 'Forgets everything issued, the log, faults and the clock’s offset; settings are the start’s again',
    json: v.strictObject({}),
    answers: { 200: { description: 'Done', body: v.strictObject({}) }, 400: refused },
    async handle({ reset }) {
      await reset();
      return {};
    },
  }),
  {
    method: 'get',
    path: '/_emulator/openapi.json',
    id: 'openapi',
    summary: 'This description',
    answers: { 200: { description: 'OpenAPI 3.1', body: v.looseObject({ openapi: v.literal('3.1.0') }) } },
    handle: ({ describe }) => describe(),
  },
];

function grantAnswer({ id, clientId, user, scope, generation, createdAt, refreshedAt, revoked }: Grant): GrantAnswer {
  const [issued, refreshed] = [new Date(createdAt).toISOString(), new Date(refreshedAt).toISOString()];
  return { id, client: clientId, user, scope, generation, issued, refreshed, revoked };
}
