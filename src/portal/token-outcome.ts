import type { TokenOutcome } from '../core/grants/token-outcome.ts';
import { type CredentialLocation, describeCredentials } from '../core/portals/identity.ts';
import type { PortalResponse } from './http.ts';
import { parseErrorCode, parseTokenResponse } from './token-response.ts';

/** Maps a response of the token endpoint to its outcome (docs/portal.md). */
export function classifyTokenResponse({ status, body, retryAfter, portalTime }: PortalResponse): TokenOutcome {
  if (status >= 200 && status < 300) {
    const tokens = parseTokenResponse(body);
    if (tokens !== null) return { kind: 'granted', tokens, portalTime };
    return { kind: 'ambiguous', detail: `HTTP ${status} without a token response` };
  }
  const error = parseErrorCode(body);
  const detail = describeError(status, error);
  if (status === 429 || status === 503) return { kind: 'deferred', detail, retryAfter, portalTime };
  if (status < 300 || status >= 500) return { kind: 'ambiguous', detail };
  if (status >= 400 && error === 'invalid_grant') return { kind: 'refused', detail, portalTime };
  if (status >= 400 && (error === 'invalid_client' || error === 'unauthorized_client')) {
    return { kind: 'misconfigured', detail, portalTime };
  }
  return { kind: 'rejected', detail, portalTime };
}

/** A status and the error code of the response, or null, as the detail of an outcome. */
export function describeError(status: number, error: string | null): string {
  return error === null ? `HTTP ${status}` : `HTTP ${status} ${error}`;
}

/** Adds to an outcome `misconfigured` which settings a person has to check; returns any other unchanged. */
export function withCredentialHint(outcome: TokenOutcome, location: CredentialLocation): TokenOutcome {
  if (outcome.kind !== 'misconfigured') return outcome;
  const check = describeCredentials(location, 'and');
  const detail = `the portal does not accept the hub's client_id and client secret (${outcome.detail}): check ${check}`;
  return { ...outcome, detail };
}
