import * as v from 'valibot';
import { LoginBody } from '../endpoints/emulator-api.ts';
import type { LoggedRequest } from '../http/request-log.ts';
import type { LoginResult } from '../login.ts';
import type { Operation } from './operation.ts';

/** An instant, RFC 3339. */
export const instant = () => v.pipe(v.string(), v.isoTimestamp());

const Problem = v.strictObject({
  error: v.literal('invalid_request'),
  message: v.pipe(v.string(), v.description('Names the member, what was found and what is allowed')),
});
/** The answer to a body that does not fit. */
export const refused = { description: 'A member is no good', body: Problem };

const Logged: v.GenericSchema<LoggedRequest> = v.strictObject({
  time: instant(),
  endpoint: v.picklist(['config', 'code/get', 'code/set', 'authorize', 'token', 'whoami', 'unknown']),
  client: v.nullable(v.string()),
  method: v.string(),
  url: v.pipe(v.string(), v.description('The path')),
  query: v.record(v.string(), v.string()),
  form: v.record(v.string(), v.string()),
  authorization: v.nullable(v.pipe(v.string(), v.description('The scheme'))),
  status: v.nullable(v.number()),
});

const Login: v.GenericSchema<LoginResult> = v.strictObject({
  location: v.pipe(v.string(), v.url(), v.description('Where a browser would go next')),
});

/** What is under `/_emulator/`. */
export const emulatorOperations: readonly Operation[] = [
  {
    method: 'post',
    path: '/_emulator/login',
    origin: 'base',
    id: 'login',
    summary: 'A user logs in, or refuses, without a browser',
    json: LoginBody,
    answers: { 200: { description: 'The helper has the code', body: Login }, 400: refused },
  },
  {
    method: 'get',
    path: '/_emulator/requests',
    origin: 'base',
    id: 'listRequests',
    summary: 'What clients sent and were answered, the oldest first',
    answers: {
      200: { description: 'Secrets are masked', body: v.strictObject({ requests: v.array(Logged) }) },
    },
  },
  {
    method: 'get',
    path: '/_emulator/openapi.json',
    origin: 'base',
    id: 'openapi',
    summary: 'This description',
    answers: { 200: { description: 'OpenAPI 3.1', body: v.looseObject({ openapi: v.literal('3.1.0') }) } },
  },
];
