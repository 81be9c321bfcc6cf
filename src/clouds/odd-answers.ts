import type { ErrorMeaning } from '../core/portals/portal.ts';
import type { CloudProtocol } from './cloud.ts';

/** A request to an authorization server, as in the protocol of a cloud. */
export type PortalOperation = keyof NonNullable<CloudProtocol['operations']>;

/** A response of the token endpoint: its HTTP status, and its body if that is a JSON object. */
interface Answer {
  readonly operation: PortalOperation;
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>> | null;
}

/**
 * Reads what a cloud answers otherwise than the standards say.
 * @returns the members of a token response (RFC 6749, 5.1); or an error, with what messages call it beside the HTTP
 * status; null for an answer that is as the standards say
 */
export type ReadAnswer = (
  answer: Answer,
) => { readonly members: unknown } | { readonly meaning: ErrorMeaning; readonly detail?: string } | null;

/** The clouds with odd answers, by name. A token must be refused as the cloud says beyond doubt, and never by a guess. */
export const ODD_ANSWERS: Readonly<Record<string, ReadAnswer>> = {
  /** While the person has not finished the login, it may answer with an error of its own. */
  bmw: ({ operation, status }) => (operation === 'device_token' && status === 500 ? { meaning: 'deferred' } : null),

  /** The tokens are below `body`, and `status` tells success (0) from failure; 601 means too many requests. */
  withings({ status, body }) {
    const code = body?.['status'];
    if (typeof code !== 'number' || status === 429 || status >= 500) return null;
    if (code === 0) return { members: body?.['body'] };
    return { meaning: code === 601 ? 'slow_down' : 'rejected', detail: `status ${code}` };
  },
};
