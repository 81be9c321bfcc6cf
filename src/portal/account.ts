import * as v from 'valibot';

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
