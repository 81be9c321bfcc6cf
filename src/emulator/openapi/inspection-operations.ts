import * as v from 'valibot';
import type { LoggedRequest } from '../http/logged-request.ts';
import type { Operation } from './operation.ts';
import { instant, refused } from './shared-schemas.ts';

const Logged: v.GenericSchema<LoggedRequest> = v.strictObject({
  number: v.pipe(v.number(), v.description('Grows by one with every request')),
  time: instant(),
  endpoint: v.picklist(['config', 'code/get', 'code/set', 'authorize', 'token', 'whoami', 'unknown']),
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

/** What the emulator shows of its clients. */
export const inspectionOperations: readonly Operation[] = [
  {
    method: 'get',
    path: '/_emulator/requests',
    origin: 'base',
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
    path: '/_emulator/events',
    origin: 'base',
    id: 'followEvents',
    summary: 'What happens, as it happens: `request` with an entry of the log, `change` with what to look at again',
    answers: {
      200: { description: 'Until either side closes', body: 'text/event-stream' },
      429: { description: 'Too many listeners', body: v.strictObject({ error: v.literal('too_many_listeners') }) },
    },
  },
];
