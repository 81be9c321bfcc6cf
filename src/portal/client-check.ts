import type { TokenOutcome } from '../core/grants/token-outcome.ts';
import { type CredentialLocation, describeCredentials, howToApplyCorrection } from '../core/portals/identity.ts';
import type { PortalCheck } from '../core/portals/portal-status.ts';
import type { PortalResponse, RequestOutcome } from './http.ts';
import { describeError } from './token-outcome.ts';
import { parseErrorCode } from './token-response.ts';

/** No portal has issued it. */
export const INVALID_REFRESH_TOKEN = 'not-a-token-of-this-portal';

/**
 * Whether a portal accepts the hub as its client, by its response to a token request with
 * {@link INVALID_REFRESH_TOKEN}. A
 * portal authenticates the client before it looks at the token (RFC 6749, 5.2).
 * @param classify what the response means
 */
export function checkClient(
  outcome: RequestOutcome,
  classify: (response: PortalResponse) => TokenOutcome['kind'],
  location: CredentialLocation,
): PortalCheck {
  if (outcome.kind !== 'answer') return clientUnchecked(`the token endpoint did not respond (${outcome.detail})`);
  const { status } = outcome.response;
  const answer = describeError(status, parseErrorCode(outcome.response));
  const meaning = classify(outcome.response);
  if (meaning === 'refused') return clientAccepted(answer);
  if (meaning === 'misconfigured' || status === 401) return clientRejected(answer, location);
  if (meaning === 'deferred') return clientUnchecked(`the portal asked to wait (${answer}); try again later`);
  if (meaning === 'ambiguous') return clientUnchecked(`the token endpoint has a problem (${answer}); try again later`);
  return clientUnchecked(
    `the token endpoint answers an invalid refresh token with ${answer}, which does not tell; only a login shows it`,
  );
}

/** @param answer what the portal responded */
export function clientAccepted(answer: string): PortalCheck {
  return { name: 'client', result: 'ok', detail: `the portal accepts the hub as its client (${answer})` };
}

/** @param answer what the portal responded */
export function clientRejected(answer: string, location: CredentialLocation): PortalCheck {
  const detail = `the portal does not accept the hub as its client (${answer}): correct ${describeCredentials(location, 'or')}, and ${howToApplyCorrection(location)}`;
  return { name: 'client', result: 'fail', detail };
}

/** @param why as the end of a sentence */
export function clientUnchecked(why: string): PortalCheck {
  return { name: 'client', result: 'warn', detail: `it is not known whether the portal accepts the hub: ${why}` };
}
