import * as v from 'valibot';
import type { PollOutcome } from '../../core/portals/portal.ts';
import type { TokenOutcome, TokenResponse } from '../../core/portals/token-outcome.ts';
import { displayableAccount } from '../account.ts';
import type { PortalResponse } from '../http.ts';
import type { PresetProtocol } from '../presets/preset.ts';
import {
  describeError,
  type ErrorMeaning,
  type ErrorResult,
  meaningOfCode,
  meaningOfError,
  toErrorOutcome,
} from '../token-outcome.ts';
import { parseBody, parseErrorCode, readTokenResponse } from '../token-response.ts';
import type { OAuth2Settings } from './settings.ts';

/** A request to an authorization server, as in the protocol of a preset. */
export type PortalOperation = keyof NonNullable<PresetProtocol['operations']>;

/** A response of the token endpoint: tokens, or what its error means. */
export type TokenEndpointResult =
  | Extract<TokenOutcome, { kind: 'granted' }>
  | ({ readonly kind: 'error' } & ErrorResult);

/** What the names in a preset's list of errors mean. */
const PRESET_MEANINGS = {
  pending: 'not_yet',
  slow_down: 'slow_down',
  deferred: 'deferred',
  refused: 'refused',
  misconfigured: 'misconfigured',
  login_required: 'refused',
} as const;

/**
 * Reads a response of the token endpoint. A rotated token must not be lost because of anything beside it, so only the
 * tokens themselves have to be valid (docs/decisions/oauth2-library.md).
 */
export function readTokenEndpointResponse(
  response: PortalResponse,
  operation: PortalOperation,
  {
    protocol,
    scopeSeparator,
    tokenLifetime,
    errorCodes,
  }: Pick<OAuth2Settings, 'protocol' | 'scopeSeparator' | 'tokenLifetime' | 'errorCodes'>,
): TokenEndpointResult {
  const { status, portalTime } = response;
  const body = parseObject(response.body);
  const vendorStatus = protocol.response?.status;
  const vendorCode = vendorStatus && body?.[vendorStatus.member];
  const isVendorError = vendorStatus !== undefined && body !== null && vendorCode !== vendorStatus.success;
  const isNumbered = isVendorError && typeof vendorCode === 'number';
  const ownCode = parseErrorCode(response, errorCodes);
  const standardCode = standardErrorCode(ownCode, errorCodes);
  const error = standardCode ?? ownCode;
  const detail = isNumbered ? `HTTP ${status} status ${vendorCode}` : describeError(status, ownCode);
  const failed = (meaning: ErrorMeaning): TokenEndpointResult => ({
    ...{ kind: 'error', meaning, error, detail, response },
  });

  const known = protocol.errors?.find(
    (entry) =>
      (entry.operations?.includes(operation) ?? true) &&
      (entry.http === undefined || entry.http === status) &&
      (entry.status === undefined || (typeof vendorCode === 'number' && entry.status.includes(vendorCode))),
  );
  if (standardCode !== null) return failed(meaningOfCode(standardCode));
  if (known !== undefined) return failed(PRESET_MEANINGS[known.as]);
  const byCode = error === null ? null : meaningOfCode(error);
  if (status >= 200 && status < 300 && !isVendorError) {
    const members = body && toStandardMembers(body, protocol, scopeSeparator);
    const tokens = readTokenResponse(members, tokenLifetime);
    if (tokens !== null) return { kind: 'granted', tokens: withAccount(tokens, members, protocol), portalTime };
    // Some clouds report errors with status 200. Without one, the response may have been that of a rotation.
    return failed(byCode ?? 'ambiguous');
  }
  const meaning = meaningOfError(response, error);
  // With a number of the cloud's own, the response is the portal's.
  return failed(isNumbered && (status < 300 || meaning === 'blocked') ? (byCode ?? 'rejected') : meaning);
}

/** The standard's code for one of the portal's own; null if the configuration names none. */
export function standardErrorCode(ownCode: string | null, errorCodes: Readonly<Record<string, string>>): string | null {
  return ownCode !== null && Object.hasOwn(errorCodes, ownCode) ? (errorCodes[ownCode] ?? null) : null;
}

/** The outcome of a code exchange or a refresh. */
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

/** A token response with the members of RFC 6749, 5.1. @param scopeSeparator of requests, and of responses as a rule */
function toStandardMembers(
  body: Record<string, unknown>,
  { response = {} }: PresetProtocol,
  scopeSeparator: string,
): Record<string, unknown> {
  const { envelope, members = {}, scope_separator: separator = scopeSeparator } = response;
  const inner = envelope === undefined ? body : body[envelope];
  const { account: _, ...names } = members;
  const found: Record<string, unknown> = { ...(isObject(inner) ? inner : {}) };
  for (const [standard, own] of Object.entries(names)) found[standard] = found[own];
  const { scope } = found;
  if (typeof scope === 'string') found['scope'] = scope.replaceAll(separator, ' ');
  // Only of names: to join nested lists overflows the stack.
  if (Array.isArray(scope)) found['scope'] = scope.filter((name) => typeof name === 'string').join(' ');
  return found;
}

/** The member that names the account, unless a token does. */
function withAccount(
  tokens: TokenResponse,
  members: Readonly<Record<string, unknown>> | null,
  { response }: PresetProtocol,
): TokenResponse {
  const name = response?.members?.account;
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
