import * as v from 'valibot';
import { instantSchema } from './json-body.ts';

/** The portal's endpoints. */
export const ENDPOINTS = ['config', 'code/get', 'code/set', 'authorize', 'token', 'whoami'] as const;

/** Which of the portal's endpoints a request is for; `unknown`: none of them. */
export type Endpoint = (typeof ENDPOINTS)[number] | 'unknown';

/**
 * One request and its answer. Secrets show as `#` and eight characters of a salted hash, so that equal ones look equal;
 * with the option `showSecrets` they show as they are.
 */
export const LoggedRequest = v.strictObject({
  /** From 1; a reset does not start it again. */
  number: v.pipe(v.number(), v.description('Grows by one with every request')),
  /** By the emulator's clock. */
  time: instantSchema(),
  endpoint: v.picklist([...ENDPOINTS, 'unknown']),
  /** The registered client named in the request, authenticated or not. */
  client: v.nullable(v.string()),
  method: v.string(),
  /** What came in the query is under `query`. */
  url: v.pipe(v.string(), v.description('The path')),
  query: v.record(v.string(), v.string()),
  /** The form in the body. */
  form: v.record(v.string(), v.string()),
  /** Of the Authorization header, in lower case. */
  authorization: v.nullable(v.pipe(v.string(), v.description('The scheme'))),
  status: v.pipe(v.nullable(v.number()), v.description('Null where no whole answer arrived, or not yet')),
  /** Empty for a page. What was made and then lost on the way is here too, beside the status null. */
  answer: v.pipe(
    v.record(v.string(), v.nullable(v.union([v.string(), v.number(), v.boolean()]))),
    v.description('The members of the JSON, or the location of a redirect'),
  ),
  fault: v.optional(v.pipe(v.string(), v.description('The id of the fault that struck the request'))),
});
export type LoggedRequest = Readonly<v.InferOutput<typeof LoggedRequest>>;
