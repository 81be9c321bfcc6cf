import * as v from 'valibot';
import type { Answer } from '../../system/openapi.ts';

/** An instant, RFC 3339. */
export const instant = () => v.pipe(v.string(), v.isoTimestamp());

const Problem = v.strictObject({
  error: v.literal('invalid_request'),
  message: v.pipe(v.string(), v.description('Names the member, what was found and what is allowed')),
});

/** What the emulator's own API answers to a request that is no good. */
export const refused: Answer = { description: 'A member is no good', body: Problem };
