import { STATUS_CODES } from 'node:http';
import * as v from 'valibot';
import { printableDescription } from '../core/portals/error-description.ts';
import type { TokenResponse } from '../core/portals/token-outcome.ts';
import { Secret } from '../core/secret.ts';
import type { PortalResponse } from './http.ts';

/** Seconds that an access token lives if neither the response nor the configuration says (docs/portal.md). */
const DEFAULT_LIFETIME = 3600;
/**
 * Upper limit of the lifetime of a refresh token, in seconds: ten years. A longer value is treated as this one. An
 * `expires_in` that is longer can't be true: it may be a time, or milliseconds.
 */
const MAX_REFRESH_TOKEN_LIFETIME = 3650 * 86_400;
/** Upper limit of a lifetime, in seconds. A longer value is treated as this one. */
const MAX_LIFETIME = 365 * 86_400;

/**
 * Lifetime of a token that has already expired, as in the response to a late retry, in seconds. The hub refreshes it
 * within a second, and never issues it, because less than a whole second is left.
 */
const EXPIRED_LIFETIME = 0.999;

/** Some clouds send a text, and some a text with a fraction. */
const seconds = v.union([v.number(), v.pipe(v.string(), v.regex(/^-?\d{1,20}(?:\.\d{1,9})?$/), v.transform(Number))]);

/**
 * Characters of a token (RFC 6749, appendix A.12 and A.17). Appliances put it into a header, and `latchkey token`
 * prints it. Its length is limited because each refresh writes it to disk.
 */
const token = v.pipe(v.string(), v.regex(/^[\x20-\x7e]{1,16384}$/));
/**
 * Absent, empty or not a string: the portal kept the refresh token. A string with invalid characters does not count as
 * absent.
 */
const absentToken = v.pipe(
  v.unknown(),
  v.check((value) => typeof value !== 'string' || value === ''),
  v.transform(() => null),
);
/** A compact JWS with three parts, or JWE with five (RFC 7519, 3). Its length is limited as a token's. */
const idToken = v.pipe(v.string(), v.maxLength(16_384), v.regex(/^[\w-]+(?:\.[\w-]*){2}(?:(?:\.[\w-]*){2})?$/));
/** Zero is a refresh token that does not expire (Keycloak), so it counts as absent. */
const refreshTokenLifetime = v.pipe(
  seconds,
  v.finite(),
  v.minValue(1),
  v.transform((value) => Math.round(1000 * Math.min(value, MAX_REFRESH_TOKEN_LIFETIME))),
);
/** Shown in `status` and in token responses. Characters: RFC 6749, appendix A.4. */
const scope = v.pipe(v.string(), v.maxLength(4096), v.regex(/^[\x20\x21\x23-\x5b\x5d-\x7e]*$/), v.regex(/[^ ]/));

/**
 * A portal that responds has used up the refresh token that it got. So an invalid member beside the tokens is ignored,
 * and not the whole response, which contains the successor. An invalid refresh token makes the response unusable: it
 * may be the successor, and then the current one is used up (docs/decisions/junk-answers.md).
 */
const tokenResponse = v.object({
  access_token: token,
  refresh_token: v.optional(v.union([absentToken, token]), null),
  scope: v.optional(v.fallback(v.nullable(scope), null), null),
  expires_in: v.optional(v.fallback(v.nullable(seconds), null), null),
  id_token: v.optional(v.unknown()),
  refresh_token_expires_in: v.optional(v.fallback(v.nullable(refreshTokenLifetime), null), null),
  /** Keycloak's name for `refresh_token_expires_in`. */
  refresh_expires_in: v.optional(v.fallback(v.nullable(refreshTokenLifetime), null), null),
});

/** Error codes have no digits (RFC 6749, 5.2), so a token that a portal puts there by mistake is not shown. */
const errorCode = v.pipe(v.string(), v.regex(/^[A-Za-z][A-Za-z_. -]{0,39}$/));
/** The code, or an object that contains it below one of the names that clouds use. */
const errorValue = v.union([
  errorCode,
  ...['code', 'errorType', 'error', 'type', 'status'].map((name) =>
    v.pipe(
      v.looseObject({ [name]: errorCode }),
      v.transform((value): string => String(value[name])),
    ),
  ),
]);
const errorResponse = v.union([
  v.pipe(
    v.object({ error: errorValue }),
    v.transform(({ error }) => error),
  ),
  v.pipe(
    v.object({ errors: v.looseTuple([errorValue]) }),
    v.transform(({ errors: [first] }) => first),
  ),
]);

/**
 * The tokens of a response with the members of RFC 6749, 5.1; null if it is invalid. Empty or invalid members other than
 * the tokens count as absent.
 * @param tokenLifetime how long an access token lives, in ms, if the response does not say it, or what can't be true;
 * null if that is not configured
 */
export function readTokenResponse(members: unknown, tokenLifetime: number | null): TokenResponse | null {
  const { success, output: parsed } = v.safeParse(tokenResponse, members);
  if (!success) return null;
  const refreshLifetime = parsed.refresh_token_expires_in ?? parsed.refresh_expires_in;
  const jwt = v.safeParse(idToken, parsed.id_token);
  const account = accountFromTokens(parsed.id_token, parsed.access_token);
  return {
    accessToken: new Secret(parsed.access_token),
    refreshToken: parsed.refresh_token === null ? null : new Secret(parsed.refresh_token),
    scope: parsed.scope,
    ...readLifetime(parsed.expires_in, tokenLifetime),
    ...(account !== null && { account }),
    ...(jwt.success && { idToken: new Secret(jwt.output) }),
    ...(refreshLifetime !== null && { refreshTokenLifetime: refreshLifetime }),
  };
}

function readLifetime(
  expiresIn: number | null,
  tokenLifetime: number | null,
): Pick<TokenResponse, 'lifetime' | 'impossibleLifetime'> {
  const isPossible = expiresIn === null || (expiresIn >= 1 && expiresIn <= MAX_REFRESH_TOKEN_LIFETIME);
  if (isPossible && expiresIn !== null) return { lifetime: 1000 * Math.min(expiresIn, MAX_LIFETIME) };
  const lifetime = tokenLifetime ?? 1000 * DEFAULT_LIFETIME;
  if (isPossible || tokenLifetime !== null) return { lifetime };
  return { lifetime: expiresIn < 1 ? 1000 * EXPIRED_LIFETIME : lifetime, impossibleLifetime: expiresIn };
}

/**
 * The code of an OAuth error response: its `error` (RFC 6749, 5.2), or the code in what some clouds send there: an
 * object, or a list `errors`. Null if the body has none, or only the name of its HTTP status, as web servers and
 * gateways write it.
 */
export function parseErrorCode(
  { status, body }: Pick<PortalResponse, 'status' | 'body'>,
  errorCodes: Readonly<Record<string, string>> = {},
): string | null {
  const code = parseBody(errorResponse, body);
  const isStatusName = code?.replaceAll('_', ' ').toLowerCase() === STATUS_CODES[status]?.toLowerCase();
  return code !== null && isStatusName && !Object.hasOwn(errorCodes, code) ? null : code;
}

/** RFC 6749, 5.2. */
const errorDescription = v.object({ error_description: v.string() });
/** What the portal itself says about an error, for people; empty if it says nothing. */
export function parseErrorDescription(body: string): string {
  return printableDescription(parseBody(errorDescription, body)?.error_description ?? '');
}

/** A form, as some clouds answer requests for tokens and device codes. */
const FORM_PATTERN = /^[\w.-]+=[^<>\s]*$/;

/** Parses a body: JSON, or a form (as in drafts of OAuth 2.0), whatever its media type says. Null if it is invalid. */
export function parseBody<const Schema extends v.GenericSchema>(
  schema: Schema,
  body: string,
): v.InferOutput<Schema> | null {
  try {
    // Without a byte order mark either.
    const text = body.trim();
    const members = FORM_PATTERN.test(text) ? Object.fromEntries(new URLSearchParams(text)) : JSON.parse(text);
    const result = v.safeParse(schema, members);
    return result.success ? result.output : null;
  } catch {
    return null;
  }
}

/** The claims by which a person recognises an account (OpenID Connect Core, 5.1), in order of preference. */
const ACCOUNT_CLAIMS = ['preferred_username', 'email', 'name', 'sub'] as const;

/** Shown on pages and terminals: no invisible characters, no changes of the writing direction, no line breaks. */
const displayText = v.pipe(v.string(), v.maxLength(128), v.regex(/^[^\p{C}\p{Zl}\p{Zp}]*$/u), v.trim(), v.minLength(1));

/**
 * The portal account with which a person logged in, read from the claims of these tokens. For display only: signatures
 * are not verified, so no decision may depend on it.
 * @param tokens an ID token and an access token; each may be a JWT (RFC 7519) or anything else
 * @returns at most 128 characters; null if no token names the account
 */
export function accountFromTokens(...tokens: readonly unknown[]): string | null {
  for (const token of tokens) {
    const claims = decodeJwtPayload(token);
    for (const name of ACCOUNT_CLAIMS) {
      const parsed = v.safeParse(v.looseObject({ [name]: displayText }), claims);
      if (parsed.success) return String(parsed.output[name]);
    }
  }
  return null;
}

/** The name or number of an account for display; null if it is neither, or has characters that are not displayed. */
export function displayableAccount(value: unknown): string | null {
  const parsed = v.safeParse(displayText, typeof value === 'number' ? String(value) : value);
  return parsed.success ? parsed.output : null;
}

/** The payload of a JWT; null if the token is not a JWT. */
function decodeJwtPayload(token: unknown): unknown {
  const [, payload, signature, ...rest] = typeof token === 'string' ? token.split('.') : [];
  if (payload === undefined || signature === undefined || rest.length > 0) return null;
  try {
    return JSON.parse(Buffer.from(payload, 'base64url').toString());
  } catch {
    return null;
  }
}
