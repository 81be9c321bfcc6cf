import type { FastifyReply, FastifyRequest } from 'fastify';
import * as v from 'valibot';
import { LoggedRequest } from '../http/logged-request.ts';
import { pathParameter, requestContext } from '../http/request-context.ts';
import { badRequest } from '../http/routes.ts';
import { choiceOf, exactObject, instantSchema, renameKeys, snakeCase, snakeCaseKeys } from '../json.ts';
import { collectFindings, Findings, PollFindings } from '../oauth/findings.ts';
import { WaitingLogin, waitingLogins } from '../oauth/helper-flows.ts';
import { type IssuedGrant, REVOCABLE } from '../oauth/issued-grants.ts';
import type { EmulatedPortal } from '../portal.ts';
import { type ApiOperation, badRequestResponse, jsonOperation, NotFoundBody } from './operation.ts';

/** The number of a request. */
const REQUEST_NUMBER = /^\d{1,15}$/;

/** A grant in API responses, without tokens. */
const GrantBody = v.strictObject({
  id: v.string(),
  client: v.string(),
  user: v.string(),
  scope: v.nullable(v.string()),
  generation: v.pipe(v.number(), v.description('The number of the newest token pair, from 1')),
  issued: instantSchema(),
  refreshed: instantSchema(),
  revoked: v.boolean(),
});
export type GrantResponseBody = v.InferOutput<typeof GrantBody>;

/** The findings in the API's spelling. */
const FindingsBody = v.strictObject({
  ...renameKeys(Findings.entries, snakeCase),
  polls: v.array(v.strictObject(renameKeys(PollFindings.entries, snakeCase))),
});

/** Operations that read the log and the state, revoke grants, reset the emulator and describe the API. */
export const inspectionOperations: readonly ApiOperation[] = [
  {
    method: 'get',
    path: '/_emulator/requests',
    id: 'listRequests',
    summary: 'List requests and responses, oldest first',
    query: v.strictObject({
      since: v.optional(
        v.pipe(v.string(), v.regex(REQUEST_NUMBER), v.description('Only requests with a higher number')),
      ),
    }),
    responses: {
      200: {
        description: 'Secrets are masked, unless the emulator was started with --show-secrets',
        body: v.strictObject({ requests: v.array(LoggedRequest) }),
      },
      400: badRequestResponse,
    },
    handle({ log }, request, reply) {
      const since = requestContext(request).query?.get('since') ?? '0';
      if (REQUEST_NUMBER.test(since)) return { requests: log.values(Number(since)) };
      return badRequest(reply, `since: must be a whole number (found ${JSON.stringify(since.slice(0, 100))})`);
    },
  },
  {
    method: 'get',
    path: '/_emulator/logins',
    id: 'listLogins',
    summary: 'List open login pages, at which the user has neither logged in nor refused',
    responses: { 200: { description: 'Oldest first', body: v.strictObject({ logins: v.array(WaitingLogin) }) } },
    handle: ({ portal }) => ({ logins: waitingLogins(portal.helperFlows, portal.now()) }),
  },
  {
    method: 'get',
    path: '/_emulator/grants',
    id: 'listGrants',
    summary: 'List grants without their tokens, least recently refreshed first',
    responses: { 200: { description: 'All grants', body: v.strictObject({ grants: v.array(GrantBody) }) } },
    handle: ({ portal }) => ({ grants: portal.grants.all().map(toGrantResponseBody) }),
  },
  jsonOperation({
    method: 'post',
    path: '/_emulator/grants/{grant_id}/revoke',
    id: 'revokeGrant',
    summary: 'Revoke a grant with all its tokens, or only the access tokens issued so far',
    params: v.strictObject({ grant_id: v.string() }),
    json: exactObject({ what: v.optional(choiceOf(REVOCABLE), 'grant') }),
    responses: {
      200: { description: 'The grant', body: GrantBody },
      400: badRequestResponse,
      404: { description: 'There is no such grant', body: NotFoundBody },
    },
    handle({ portal }, { what }, request) {
      const grant = portal.grants.find(pathParameter(request, 'grant_id') ?? '');
      if (grant === undefined) return null;
      portal.grants.revoke(grant, what);
      return toGrantResponseBody(grant);
    },
  }),
  {
    method: 'get',
    path: '/_emulator/findings',
    id: 'readFindings',
    summary: 'Get what clients did wrong; for a correct client all lists except `polls` are empty',
    responses: { 200: { description: 'Since the start or the last reset', body: FindingsBody } },
    handle: ({ portal }) => snakeCaseKeys(collectFindings(portal)),
  },
  jsonOperation({
    method: 'post',
    path: '/_emulator/reset',
    id: 'reset',
    summary:
      'Invalidate everything issued, clear the log, the findings, faults and the clock’s offset, restore the settings',
    json: exactObject({}),
    responses: { 200: { description: 'Done', body: v.strictObject({}) }, 400: badRequestResponse },
    async handle({ reset }) {
      await reset();
      return {};
    },
  }),
  {
    method: 'get',
    path: '/_emulator/openapi.json',
    id: 'openapi',
    summary: 'Get this description',
    responses: { 200: { description: 'OpenAPI 3.1', body: v.looseObject({ openapi: v.literal('3.1.0') }) } },
    handle: ({ describe }) => describe(),
  },
];

function toGrantResponseBody({
  id,
  clientId,
  user,
  scope,
  generation,
  createdAt,
  refreshedAt,
  revoked,
}: IssuedGrant): GrantResponseBody {
  const [issued, refreshed] = [new Date(createdAt).toISOString(), new Date(refreshedAt).toISOString()];
  return { id, client: clientId, user, scope, generation, issued, refreshed, revoked };
}

const EVENT_STREAM = 'text/event-stream; charset=utf-8';

/** Bytes buffered for a listener; one that reads more slowly is disconnected. */
const MAX_BACKLOG_BYTES = 1_000_000;

/** The stream of events. */
export const eventsOperation: ApiOperation = {
  method: 'get',
  path: '/_emulator/events',
  id: 'followEvents',
  summary: 'Follow events: `request` with an entry of the log, `change` with the name of what changed',
  responses: {
    200: { description: 'Until either side closes the connection', body: 'text/event-stream' },
    429: { description: 'Too many listeners', body: v.strictObject({ error: v.literal('too_many_listeners') }) },
  },
  handle: ({ portal }, request, reply) => sendEvents(portal, request, reply),
};

/**
 * Sends server-sent events (HTML, 9.2) until either side closes.
 * - `request` (`id` is its number): a `LoggedRequest`, after its response was sent or lost.
 * - `change` `{"what": "settings" | "faults" | "clock" | "logins" | "devices" | "grants" | "requests"}`: read it again.
 */
function sendEvents(
  portal: Pick<EmulatedPortal, 'changes' | 'now'>,
  request: FastifyRequest,
  reply: FastifyReply,
): unknown {
  if (request.method === 'HEAD') {
    reply.type(EVENT_STREAM);
    return undefined;
  }
  const { raw } = reply;
  const unsubscribe = portal.changes.subscribe(({ event, data }) => {
    if (raw.destroyed) return;
    const id = 'number' in data ? `id: ${data.number}\n` : '';
    raw.write(`event: ${event}\n${id}data: ${JSON.stringify(data)}\n\n`);
    if (raw.writableLength > MAX_BACKLOG_BYTES) raw.destroy();
  });
  if (unsubscribe === null) {
    reply.code(429);
    return { error: 'too_many_listeners' };
  }
  reply.hijack();
  raw.writeHead(200, {
    'content-type': EVENT_STREAM,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    date: new Date(portal.now()).toUTCString(),
  });
  raw.write(': the emulator’s events\n\n');
  raw.once('close', unsubscribe);
  return undefined;
}
