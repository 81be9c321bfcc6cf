import { type CredentialLocation, describeCredentials } from '../core/portals/identity.ts';
import type { ErrorMeaning } from '../core/portals/portal.ts';
import type { TokenOutcome } from '../core/portals/token-outcome.ts';
import type { PortalResponse } from './http.ts';
import { parseErrorDescription } from './token-response.ts';

/** An error response. */
export interface ErrorResult {
  readonly meaning: ErrorMeaning;
  /** Its code; null if it has none. */
  readonly error: string | null;
  readonly detail: string;
  readonly response: PortalResponse;
}

/** The error codes of RFC 6749, 5.2, and RFC 8628, 3.5; others are rejections. */
const ERROR_CODES: ReadonlyMap<string, ErrorMeaning> = new Map([
  ['invalid_grant', 'refused'],
  ['invalid_client', 'misconfigured'],
  ['unauthorized_client', 'misconfigured'],
  ['temporarily_unavailable', 'deferred'],
  ['authorization_pending', 'not_yet'],
  ['slow_down', 'slow_down'],
  ['access_denied', 'denied'],
  ['expired_token', 'ended'],
]);

/** What an error code means. */
export function meaningOfCode(error: string): ErrorMeaning {
  return ERROR_CODES.get(error) ?? 'rejected';
}

/** A portal that refuses a request because it is overloaded does so at once; gateways wait longer than this, in ms. */
const GATEWAY_WAIT = 5000;

/**
 * What an error response means by its status and its code. Only a response with a code is the portal's own: a firewall
 * or a proxy before it answers with a page. A gateway that has waited for the portal in vain answers 503 too: the portal may
 * have acted.
 */
export function meaningOfError({ status, retryAfter, waited = 0 }: PortalResponse, error: string | null): ErrorMeaning {
  // A server that counts requests says both.
  if (status === 429 && error === 'slow_down' && retryAfter === null) return 'slow_down';
  const isFromPortal = retryAfter !== null || error !== null || waited < GATEWAY_WAIT;
  if (status === 429 || (status === 503 && isFromPortal)) return 'deferred';
  if (status < 300 || status >= 500) return 'ambiguous';
  const meaning = status < 400 || error === null ? 'blocked' : meaningOfCode(error);
  const isUndecided = meaning === 'blocked' || meaning === 'rejected';
  return status >= 400 && retryAfter !== null && isUndecided ? 'deferred' : meaning;
}

/** The outcome of a code exchange or a refresh that was answered with an error. */
export function toErrorOutcome({
  meaning,
  error,
  detail,
  response: { body, retryAfter, portalTime, redirect },
}: ErrorResult): Exclude<TokenOutcome, { kind: 'granted' | 'not_sent' }> {
  const description = parseErrorDescription(body);
  const said = description === '' ? detail : `${detail} (${description})`;
  switch (meaning) {
    case 'deferred':
    case 'slow_down':
    case 'not_yet':
      return { kind: 'deferred', detail, retryAfter, portalTime };
    case 'ambiguous':
      return { kind: meaning, detail };
    case 'blocked':
      return { kind: meaning, detail, portalTime, ...(redirect !== undefined && { redirect }) };
    case 'ended':
    case 'refused':
      return { kind: 'refused', detail: said, portalTime };
    case 'denied':
    case 'rejected':
      return { kind: 'rejected', error, detail: said, portalTime };
    default:
      return { kind: meaning, detail, portalTime };
  }
}

/** A status and the error code of the response, or null, as the detail of an outcome. */
export function describeError(status: number, error: string | null): string {
  return error === null ? `HTTP ${status}` : `HTTP ${status} ${error}`;
}

/** A redirect, which the hub does not follow: it could send a secret to another host. @param key that names the endpoint */
export function describeRedirect(status: number, redirect: string, key: string): string {
  return `HTTP ${status}, a redirect to ${redirect}, which the hub does not follow: correct ${key}, unless the network requires a login`;
}

/** What an outcome of a token request may be due to. */
export interface HintContext {
  readonly location: CredentialLocation;
  /** The configuration key that names the token endpoint. */
  readonly key: string;
  /** Whether the request was part of a login: then the secret may never have been right. */
  readonly isLogin: boolean;
  /** What else to try if the portal does not accept the client; left out if nothing. */
  readonly otherwise?: string;
}

/** Adds to an outcome which settings a person has to check, if it points to some; returns any other unchanged. */
export function withHint(
  outcome: TokenOutcome,
  { status }: Pick<PortalResponse, 'status'>,
  context: HintContext,
): TokenOutcome {
  const { location, key, isLogin } = context;
  if (outcome.kind === 'misconfigured') return { ...outcome, detail: clientRefusedText(outcome.detail, context) };
  if (outcome.kind !== 'blocked') return outcome;
  if (outcome.redirect !== undefined)
    return { ...outcome, detail: describeRedirect(status, outcome.redirect, `portals.${location.portal}.${key}`) };
  if (!isLogin) return outcome;
  // RFC 6749, 5.2: 401 is about the client.
  const cause = `the portal responded with ${outcome.detail} and no error code`;
  const check = checkText(context);
  return status === 401
    ? {
        kind: 'misconfigured',
        detail: `${cause}, as for a wrong client secret: ${check}`,
        portalTime: outcome.portalTime,
      }
    : { ...outcome, detail: `${cause}: ${check}; check portals.${location.portal}.${key} and any firewall on the way` };
}

/** Says that the portal does not accept the client, and what to check. @param answer what the portal responded */
export function clientRefusedText(answer: string, context: HintContext): string {
  return `the portal does not accept the hub's client_id and client secret (${answer}): ${checkText(context)}`;
}

function checkText({ location, otherwise }: HintContext): string {
  const check = `check ${describeCredentials(location, 'and')}`;
  return otherwise === undefined ? check : `${check}; if both are right, ${otherwise}`;
}
