import * as v from 'valibot';
import type { Answer, DescribedOperation } from '../../system/http/openapi.ts';

/**
 * One method of one path, as `GET /_emulator/openapi.json` tells it. What every path may answer (404 for none, 405, 413,
 * whatever a fault says) is left out of its answers.
 */
export interface Operation extends DescribedOperation {
  /** Which of the two origins serves it; default: the base origin. */
  readonly origin?: 'frontend';
  /** The ways to authenticate; default: none. */
  readonly security?: 'client' | 'bearer';
}

/** An instant, RFC 3339. */
export const instant = () => v.pipe(v.string(), v.isoTimestamp());

const Problem = v.strictObject({
  error: v.literal('invalid_request'),
  message: v.pipe(v.string(), v.description('Names the member, what was found and what is allowed')),
});

/** What the emulator's own API answers to a request that is no good. */
export const refused: Answer = { description: 'A member is no good', body: Problem };

/** The body of every 404. */
export const NotFound = v.strictObject({ error: v.literal('not_found') });
