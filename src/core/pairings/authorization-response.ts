import { printableDescription } from '../portals/error-description.ts';
import { Secret } from '../secret.ts';

/**
 * The authorization response (RFC 6749, 4.1.2; RFC 9207, 2) that a browser brought. `nothing`: neither code nor error.
 * `issuer` is left out if it has none.
 */
export type AuthorizationResponse =
  | { readonly kind: 'code'; readonly code: Secret; readonly issuer?: string }
  | AuthorizationError
  | { readonly kind: 'nothing' };

/** `description`: what the portal says about the error, for people; left out if it says nothing. */
export interface AuthorizationError {
  readonly kind: 'error';
  readonly error: string;
  readonly description?: string;
  readonly issuer?: string;
}

/** An authorization response that names its request. */
export interface StatefulResponse {
  readonly state: string;
  readonly response: AuthorizationResponse;
}

/** One that names its request, or whose address only names its pairing, by its nonce. */
export type ReceivedResponse = StatefulResponse | { readonly nonce: string; readonly response: AuthorizationResponse };

/** Portals' codes are much shorter. */
const MAX_CODE_LENGTH = 4096;
const MAX_ERROR_LENGTH = 256;
/** 22 characters, and for a relay the hub's address. */
const MAX_STATE_LENGTH = 512;

/** Parses the query of a redirect; null if a parameter is repeated or too long. */
export function parseAuthorizationResponse(query: URLSearchParams): AuthorizationResponse | null {
  const codes = query.getAll('code');
  const errors = query.getAll('error');
  const issuers = query.getAll('iss');
  const [code] = codes;
  const [error] = errors;
  const [issuer] = issuers;
  if (codes.length + errors.length > 1 || issuers.length > 1) return null;
  if ((code ?? '').length > MAX_CODE_LENGTH || (error ?? '').length > MAX_ERROR_LENGTH) return null;
  const from = issuer === undefined ? {} : { issuer };
  if (code) return { kind: 'code', code: new Secret(code), ...from };
  if (!error) return { kind: 'nothing' };
  const description = printableDescription(query.get('error_description') ?? '');
  return { kind: 'error', error, ...(description !== '' && { description }), ...from };
}

/** Parses the query of a redirect that names its request; null if it is invalid or has no `state`. */
export function parseStatefulResponse(query: URLSearchParams): StatefulResponse | null {
  const [state, ...more] = query.getAll('state');
  const response = parseAuthorizationResponse(query);
  if (response === null || !state || state.length > MAX_STATE_LENGTH || more.length > 0) return null;
  return { state, response };
}

/**
 * Takes the authorization response out of an address that a person pasted: the whole address, or what follows its "?".
 * @returns null if there is none in it
 */
export function parsePastedAddress(text: string): StatefulResponse | null {
  const trimmed = text.trim().replace(/#.*$/s, '');
  const query = trimmed.includes('?') ? trimmed.slice(trimmed.indexOf('?') + 1) : trimmed;
  const parsed = parseStatefulResponse(new URLSearchParams(query));
  return parsed === null || parsed.response.kind === 'nothing' ? null : parsed;
}
