import * as v from 'valibot';
import { instantSchema } from '../json.ts';

/**
 * The portal's endpoints. `authorize`, `token` and `revoke` are those of docs/portal.md and those below `/oauth2/`;
 * `device` is the page at which a user enters a user code.
 */
export const ENDPOINTS = [
  'config',
  'code/get',
  'code/set',
  'authorize',
  'par',
  'token',
  'revoke',
  'introspect',
  'register',
  'userinfo',
  'logout',
  'whoami',
  'discovery',
  'device_authorization',
  'device',
] as const;

/** The portal endpoint of a request; `unknown`: none of them. */
export type Endpoint = (typeof ENDPOINTS)[number] | 'unknown';

/**
 * A request and its response. Secrets are masked as `#` and eight characters of a salted hash, so that equal secrets
 * look equal. With the option `showSecrets` they are not masked.
 */
export const LoggedRequest = v.strictObject({
  /** From 1; a reset does not restart it. */
  number: v.pipe(v.number(), v.description('Increases by one with every request')),
  /** By the emulator's clock. */
  time: instantSchema(),
  endpoint: v.picklist([...ENDPOINTS, 'unknown']),
  /** The registered client named in the request, authenticated or not. */
  client: v.nullable(v.string()),
  method: v.string(),
  /** The parameters of the query are in `query`. */
  url: v.pipe(v.string(), v.description('The path')),
  query: v.record(v.string(), v.string()),
  /** The form in the body. */
  form: v.record(v.string(), v.string()),
  /** In lower case, without its parameters; left out if the request names none. */
  media: v.optional(v.pipe(v.string(), v.description('The media type of the body'))),
  /** In lower case. */
  authorization: v.nullable(v.pipe(v.string(), v.description('The scheme of the Authorization header'))),
  status: v.pipe(
    v.nullable(v.number()),
    v.description('Null if the response was not delivered completely, or not yet'),
  ),
  /** Empty for other pages. A response that was lost is here too; `status` is null then. */
  answer: v.pipe(
    v.record(v.string(), v.nullable(v.union([v.string(), v.number(), v.boolean()]))),
    v.description('The members of the JSON response, the location of a redirect, or the message of a page'),
  ),
  fault: v.optional(v.pipe(v.string(), v.description('The ID of the fault that was applied to the request'))),
});
export type LoggedRequest = Readonly<v.InferOutput<typeof LoggedRequest>>;
