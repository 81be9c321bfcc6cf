import * as v from 'valibot';
import type { TokenResponse } from '../core/grants/token-outcome.ts';
import type { LoginEndpoints } from '../core/portal.ts';
import { Secret } from '../core/secret.ts';
import { accountFromTokens } from './account.ts';

/** The value of `expires_in` where the portal leaves it out (specification, part "Limits"), in seconds. */
const DEFAULT_LIFETIME = 3600;
/** A token that claims to live longer than this is looked after as if it lived this long, in seconds. */
const MAX_LIFETIME = 365 * 86_400;

/** A person's browser must take it, and a QR code has less room yet. */
const linkAddress = v.pipe(v.string(), v.maxLength(8192));

const helperConfiguration = v.object({
  authorize_url: linkAddress,
  code_url: linkAddress,
  accesstoken_request_url: linkAddress,
});

/** Characters of an authorization code: RFC 6749, appendix A.11. */
const codeResponse = v.object({ code: v.pipe(v.string(), v.regex(/^[\x20-\x7e]{1,4096}$/)) });

/**
 * A token that has ended, as in the answer to a retry that came late: it is refreshed within the second and, as there
 * is no whole second left of it, never handed out.
 */
const EXPIRED_LIFETIME = 0.999;

const seconds = v.pipe(
  v.union([v.number(), v.pipe(v.string(), v.regex(/^\d{1,10}$/), v.transform(Number))]),
  v.finite(),
  v.minValue(0),
  v.transform((value) => Math.min(Math.max(value, EXPIRED_LIFETIME), MAX_LIFETIME)),
);

/**
 * Characters of a token: RFC 6749, appendix A.12 and A.17. It is handed out to appliances, which put it into a header, and
 * printed by `latchkey token`. It is written at each refresh, so its length has a bound too.
 */
const token = v.pipe(v.string(), v.regex(/^[\x20-\x7e]{1,16384}$/));
/** Absent, empty or no text at all: the portal gave no other refresh token. A text that can't be a token is no such thing. */
const absentToken = v.pipe(
  v.unknown(),
  v.check((value) => typeof value !== 'string' || value === ''),
  v.transform(() => null),
);
/** It is shown in `status` and in every hand-out. Its characters: RFC 6749, appendix A.4. */
const scope = v.pipe(v.string(), v.maxLength(4096), v.regex(/^[\x20\x21\x23-\x5b\x5d-\x7e]*$/), v.regex(/[^ ]/));

/**
 * A portal that answers has spent the refresh token it was sent, so an odd member beside the tokens is left out, and not
 * the whole answer with the successor in it. A refresh token that can't be taken makes the answer unreadable: it may be
 * the successor, and then the one at hand is spent (docs/decisions/junk-answers.md).
 */
const tokenResponse = v.object({
  access_token: token,
  refresh_token: v.optional(v.union([absentToken, token]), null),
  scope: v.optional(v.fallback(v.nullable(scope), null), null),
  expires_in: v.optional(v.fallback(seconds, DEFAULT_LIFETIME), DEFAULT_LIFETIME),
  id_token: v.optional(v.unknown()),
});

const errorResponse = v.object({ error: v.string() });

/** An error's name has no digits (RFC 6749, 5.2), unlike a token that a portal puts there. */
const ERROR_CODE_PATTERN = /^[A-Za-z][A-Za-z_. -]{0,39}$/;

/** Parses the config endpoint's answer; null where it is none. */
export function parseHelperConfiguration(body: string): LoginEndpoints | null {
  const parsed = parse(helperConfiguration, body);
  if (parsed === null) return null;
  const { authorize_url, code_url, accesstoken_request_url } = parsed;
  return { authorizeUrl: authorize_url, codeUrl: code_url, tokenUrl: accesstoken_request_url };
}

/** Parses what polling gives once there is a code; null where it is none. */
export function parseAuthorizationCode(body: string): Secret | null {
  const parsed = parse(codeResponse, body);
  return parsed === null ? null : new Secret(parsed.code);
}

/** Parses a token response; null where it is none. What is empty or makes no sense beside the access token counts as left out. */
export function parseTokenResponse(body: string): TokenResponse | null {
  const parsed = parse(tokenResponse, body);
  if (parsed === null) return null;
  const account = accountFromTokens(parsed.id_token, parsed.access_token);
  return {
    accessToken: new Secret(parsed.access_token),
    refreshToken: parsed.refresh_token === null ? null : new Secret(parsed.refresh_token),
    scope: parsed.scope,
    lifetime: parsed.expires_in * 1000,
    ...(account !== null && { account }),
  };
}

/** The `error` of an OAuth error answer (RFC 6749, 5.2), null where the body is none. */
export function parseErrorCode(body: string): string | null {
  const error = parse(errorResponse, body)?.error;
  return error !== undefined && ERROR_CODE_PATTERN.test(error) ? error : null;
}

function parse<const Schema extends v.GenericSchema>(schema: Schema, body: string): v.InferOutput<Schema> | null {
  try {
    const result = v.safeParse(schema, JSON.parse(body));
    return result.success ? result.output : null;
  } catch {
    return null;
  }
}
