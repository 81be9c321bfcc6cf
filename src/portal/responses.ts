import * as v from 'valibot';
import type { CloudProtocol } from '../clouds/cloud.ts';
import type { PortalOperation, ReadAnswer } from '../clouds/odd-answers.ts';
import type { ErrorMeaning, PollOutcome, RevocationOutcome, Unreachable } from '../core/portals/portal.ts';
import type { TokenOutcome, TokenResponse } from '../core/portals/token-outcome.ts';
import type { PortalResponse, RequestOutcome } from './http.ts';
import {
  describeError,
  type ErrorResult,
  type HintContext,
  meaningOfCode,
  meaningOfError,
  toErrorOutcome,
  withHint,
} from './token-outcome.ts';
import { displayableAccount, parseBody, parseErrorCode, readTokenResponse } from './token-response.ts';

/** How the responses of a portal are read. */
export interface ResponseRules {
  /** Lifetime of an access token if the response does not say it, or what can't be true, in ms; null if not configured. */
  readonly tokenLifetime: number | null;
  /** What separates the names of a scope. */
  readonly scopeSeparator: string;
  /** The portal's own error codes, and those of RFC 6749 and RFC 8628 that mean the same. */
  readonly errorCodes: Readonly<Record<string, string>>;
  /** Whether an error code counts in a response with a status of success, as some clouds send it. */
  readonly readsErrorsOfSuccess: boolean;
  readonly protocol: Pick<CloudProtocol, 'account_member'>;
  /** Reads what the cloud answers otherwise than the standards say; null if it does not. */
  readonly readAnswer: ReadAnswer | null;
}

/** A response of the token endpoint: tokens, or what its error means. */
type TokenEndpointResult = Extract<TokenOutcome, { kind: 'granted' }> | ({ readonly kind: 'error' } & ErrorResult);

/**
 * Reads a response of the token endpoint (docs/portal.md). A rotated token must not be lost because of anything beside
 * it, so only the tokens themselves have to be valid (docs/decisions/oauth2-library.md).
 */
export function readTokenEndpointResponse(
  response: PortalResponse,
  operation: PortalOperation,
  rules: ResponseRules,
): TokenEndpointResult {
  const { status, portalTime } = response;
  const isSuccess = status >= 200 && status < 300;
  const body = parseObject(response.body);
  const ownCode = parseErrorCode(response, rules.errorCodes);
  const standardCode = standardErrorCode(ownCode, rules.errorCodes);
  const error = standardCode ?? ownCode;
  const failed = (meaning: ErrorMeaning, detail = describeError(status, ownCode)): TokenEndpointResult => ({
    kind: 'error',
    meaning,
    error,
    detail,
    response,
  });

  if (standardCode !== null && (rules.readsErrorsOfSuccess || !isSuccess)) return failed(meaningOfCode(standardCode));
  const odd = rules.readAnswer?.({ operation, status, body }) ?? null;
  if (odd !== null && 'meaning' in odd)
    return failed(odd.meaning, odd.detail === undefined ? undefined : `HTTP ${status} ${odd.detail}`);
  if (!isSuccess) return failed(meaningOfError(response, error));
  const members = toStandardMembers(odd?.members ?? body, rules.scopeSeparator);
  const tokens = members && readTokenResponse(members, rules.tokenLifetime);
  if (tokens !== null) return { kind: 'granted', tokens: withAccount(tokens, members, rules), portalTime };
  // Without an error, the response may have been that of a rotation.
  if (error !== null && rules.readsErrorsOfSuccess) return failed(meaningOfCode(error));
  return failed('ambiguous', `HTTP ${status} without a token response`);
}

/** The standard's code for one of the portal's own; null if the configuration names none. */
export function standardErrorCode(ownCode: string | null, errorCodes: Readonly<Record<string, string>>): string | null {
  return ownCode !== null && Object.hasOwn(errorCodes, ownCode) ? (errorCodes[ownCode] ?? null) : null;
}

/** The outcome of a code exchange or a refresh that was requested, with what a person has to check. */
export function tokenOutcomeOf(
  outcome: RequestOutcome,
  operation: 'code' | 'refresh',
  rules: ResponseRules,
  hint: HintContext,
): TokenOutcome {
  switch (outcome.kind) {
    case 'answer':
      return withHint(
        toTokenOutcome(readTokenEndpointResponse(outcome.response, operation, rules)),
        outcome.response,
        hint,
      );
    case 'not_sent':
      return outcome;
    case 'no_answer':
      return { kind: 'ambiguous', detail: outcome.detail };
  }
}

/** The outcome of a code exchange or a refresh that was answered. */
export function toTokenOutcome(result: TokenEndpointResult): TokenOutcome {
  return result.kind === 'granted' ? result : toErrorOutcome(result);
}

/** The outcome of a poll with a device code. */
export function toPollOutcome(result: TokenEndpointResult): PollOutcome {
  if (result.kind === 'granted') return result;
  const {
    meaning,
    detail,
    response: { retryAfter, portalTime },
  } = result;
  switch (meaning) {
    case 'not_yet':
    case 'slow_down':
    case 'denied':
    case 'ended':
      return { kind: meaning, portalTime };
    case 'refused':
      return { kind: 'ended', portalTime };
    case 'misconfigured':
      return { kind: 'misconfigured', detail, portalTime };
    default:
      return { kind: 'unreachable', detail, retryAfter, portalTime };
  }
}

/** The outcome of a request for a link or a poll that has no answer of the portal. */
export function unreachable({
  detail,
  certificateError,
}: Pick<Unreachable, 'detail' | 'certificateError'>): Unreachable & { readonly portalTime: null } {
  const failure = { detail, ...(certificateError && { certificateError }) };
  return { kind: 'unreachable', ...failure, retryAfter: null, portalTime: null };
}

/** The outcome of a revocation (RFC 7009, 2.2). */
export function toRevocationOutcome(outcome: RequestOutcome): RevocationOutcome {
  if (outcome.kind !== 'answer') return { kind: 'failed', detail: outcome.detail };
  const { status } = outcome.response;
  if (status >= 200 && status < 300) return { kind: 'revoked' };
  return { kind: 'failed', detail: describeError(status, parseErrorCode(outcome.response)) };
}

/** Whether a portal rejects a request for a link for good: the same request would fail again. */
export function rejectsForGood(status: number): boolean {
  return status >= 300 && status < 500 && status !== 408 && status !== 429;
}

/** A token response whose scope is a text as in RFC 6749, 3.3; null if there is none. */
function toStandardMembers(members: unknown, scopeSeparator: string): Record<string, unknown> | null {
  if (!isObject(members)) return null;
  const { scope } = members;
  if (typeof scope === 'string') return { ...members, scope: scope.replaceAll(scopeSeparator, ' ') };
  // Only of names: to join nested lists overflows the stack.
  if (Array.isArray(scope)) return { ...members, scope: scope.filter((name) => typeof name === 'string').join(' ') };
  return members;
}

/** The member that names the account, unless a token does. */
function withAccount(
  tokens: TokenResponse,
  members: Readonly<Record<string, unknown>> | null,
  { protocol: { account_member: name } }: ResponseRules,
): TokenResponse {
  const account = tokens.account ?? (name === undefined ? null : displayableAccount(members?.[name]));
  return account === null ? tokens : { ...tokens, account };
}

function parseObject(text: string): Record<string, unknown> | null {
  const parsed = parseBody(v.unknown(), text);
  return isObject(parsed) ? parsed : null;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
