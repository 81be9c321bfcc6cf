import * as v from 'valibot';
import { Reset, Revocation } from '../api/inspection.ts';
import { ENDPOINTS, type LoggedRequest } from '../http/logged-request.ts';
import type { WaitingLogin } from '../oauth/helper-runs.ts';
import { instant, NotFound, type Operation, refused } from './operation.ts';

const Logged: v.GenericSchema<LoggedRequest> = v.strictObject({
  number: v.pipe(v.number(), v.description('Grows by one with every request')),
  time: instant(),
  endpoint: v.picklist([...ENDPOINTS, 'unknown']),
  client: v.nullable(v.string()),
  method: v.string(),
  url: v.pipe(v.string(), v.description('The path')),
  query: v.record(v.string(), v.string()),
  form: v.record(v.string(), v.string()),
  authorization: v.nullable(v.pipe(v.string(), v.description('The scheme'))),
  status: v.pipe(v.nullable(v.number()), v.description('Null where no whole answer arrived, or not yet')),
  answer: v.pipe(
    v.record(v.string(), v.nullable(v.union([v.string(), v.number(), v.boolean()]))),
    v.description('The members of the JSON, or the location of a redirect'),
  ),
  fault: v.optional(v.pipe(v.string(), v.description('The id of the fault that struck the request'))),
});

const Login: v.GenericSchema<WaitingLogin> = v.strictObject({
  state: v.pipe(v.string(), v.description('The id of the state; `login` takes it like the state itself')),
  client: v.string(),
  opened: instant(),
  expires: instant(),
});

const Grant = v.strictObject({
  id: v.string(),
  client: v.string(),
  user: v.string(),
  scope: v.nullable(v.string()),
  generation: v.pipe(v.number(), v.description('The newest pair of tokens, from 1')),
  issued: instant(),
  refreshed: instant(),
  revoked: v.boolean(),
});

const finding = { client: v.string(), grant: v.string(), count: v.number(), message: v.string() };
const interval = () => v.pipe(v.nullable(v.number()), v.description('Seconds'));

const Findings = v.strictObject({
  reused_refresh_tokens: v.array(v.strictObject(finding)),
  repeated_codes: v.array(v.strictObject(finding)),
  overlapping_refreshes: v.array(v.strictObject(finding)),
  early_refreshes: v.array(
    v.strictObject({
      ...finding,
      earliest: v.pipe(v.number(), v.description('Seconds after the issue of the tokens')),
    }),
  ),
  failed_authentications: v.array(
    v.strictObject({
      client: v.nullable(v.string()),
      way: v.picklist(['form', 'authorization header', 'none']),
      count: v.number(),
      message: v.string(),
    }),
  ),
  polls: v.array(
    v.strictObject({
      client: v.string(),
      state: v.pipe(v.string(), v.description('The id of the state')),
      count: v.number(),
      shortest_interval: interval(),
      median_interval: interval(),
      longest_interval: interval(),
      after_code: v.pipe(v.number(), v.description('Polls after the one that brought the code')),
      message: v.string(),
    }),
  ),
});

/** What the emulator shows of its clients, and forgets. */
export const inspectionOperations: readonly Operation[] = [
  {
    method: 'get',
    path: '/_emulator/requests',
    id: 'listRequests',
    summary: 'What clients sent and were answered, the oldest first',
    query: v.strictObject({
      since: v.optional(v.pipe(v.string(), v.regex(/^\d{1,15}$/), v.description('Only requests with a higher number'))),
    }),
    answers: {
      200: {
        description: 'Secrets are masked, unless the emulator was told to show them',
        body: v.strictObject({ requests: v.array(Logged) }),
      },
      400: refused,
    },
  },
  {
    method: 'get',
    path: '/_emulator/logins',
    id: 'listLogins',
    summary: 'Login pages that are open and wait for somebody',
    answers: { 200: { description: 'The oldest first', body: v.strictObject({ logins: v.array(Login) }) } },
  },
  {
    method: 'get',
    path: '/_emulator/grants',
    id: 'listGrants',
    summary: 'Grants, without their tokens; the one that was refreshed longest ago first',
    answers: { 200: { description: 'All grants', body: v.strictObject({ grants: v.array(Grant) }) } },
  },
  {
    method: 'post',
    path: '/_emulator/grants/{grant_id}/revoke',
    id: 'revokeGrant',
    summary: 'Revokes a grant with all its tokens, or only the access tokens issued so far',
    params: v.strictObject({ grant_id: v.string() }),
    json: Revocation,
    answers: {
      200: { description: 'The grant', body: Grant },
      400: refused,
      404: { description: 'There is no such grant', body: NotFound },
    },
  },
  {
    method: 'get',
    path: '/_emulator/findings',
    id: 'readFindings',
    summary: 'What the author of a client wants to know; all lists but `polls` are empty for a good client',
    answers: { 200: { description: 'Since the start or the last reset', body: Findings } },
  },
  {
    method: 'post',
    path: '/_emulator/reset',
    id: 'reset',
    summary: 'Forgets everything issued, the log, faults and the clock’s offset; settings are the start’s again',
    json: Reset,
    answers: { 200: { description: 'Done', body: v.strictObject({}) }, 400: refused },
  },
  {
    method: 'get',
    path: '/_emulator/events',
    id: 'followEvents',
    summary: 'What happens, as it happens: `request` with an entry of the log, `change` with what to look at again',
    answers: {
      200: { description: 'Until either side closes', body: 'text/event-stream' },
      429: { description: 'Too many listeners', body: v.strictObject({ error: v.literal('too_many_listeners') }) },
    },
  },
];
