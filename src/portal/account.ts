import * as v from 'valibot';

/** The claims by which a person knows an account (OpenID Connect Core, 5.1), the most telling first. */
const ACCOUNT_CLAIMS = ['preferred_username', 'email', 'name', 'sub'] as const;

/** It is shown on pages and terminals: nothing invisible, nothing that turns the writing around, no line breaks. */
const displayText = v.pipe(v.string(), v.maxLength(128), v.regex(/^[^\p{C}\p{Zl}\p{Zp}]*$/u), v.trim(), v.minLength(1));

/**
 * With which account of the portal somebody has logged in, as far as one of these tokens tells. It is for display alone, so nothing
 * is verified, and nothing may be decided by it. Nothing of a token is told but such a claim.
 * @param tokens an ID token and an access token, JWTs (RFC 7519) or anything else
 * @returns at most 128 characters; null if none tells
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

/** The payload of a JWT; null if it is none. */
function decodeJwtPayload(token: unknown): unknown {
  const [, payload, signature, ...rest] = typeof token === 'string' ? token.split('.') : [];
  if (payload === undefined || signature === undefined || rest.length > 0) return null;
  try {
    return JSON.parse(Buffer.from(payload, 'base64url').toString());
  } catch {
    return null;
  }
}
