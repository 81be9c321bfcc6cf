import { Failure } from '../failure.ts';

/** RFC 6749 section 3.3: scope-token = 1*( %x21 / %x23-5B / %x5D-7E ). */
const SCOPE_TOKEN = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

/** Characters of a scope, which is part of every token request and token response. */
const MAX_SCOPE_LENGTH = 1000;

/**
 * Checks a scope as a person writes it, names separated by spaces, and returns it without repetitions; null for an
 * empty one.
 * @throws Failure `scope_invalid`
 */
export function checkScope(scope: string | null | undefined): string | null {
  const names = scopeNames(scope);
  const invalid = names.find((name) => !SCOPE_TOKEN.test(name));
  if (invalid !== undefined) {
    throw new Failure(
      'scope_invalid',
      `the scope ${JSON.stringify(invalid.slice(0, 80))} has a character that is not allowed: use names such as "Monitoring RemoteControl", without quotes, backslashes or accents`,
    );
  }
  const text = [...new Set(names)].join(' ');
  if (text.length > MAX_SCOPE_LENGTH) {
    throw new Failure('scope_invalid', `the scope has ${text.length} characters: use at most ${MAX_SCOPE_LENGTH}`);
  }
  return names.length === 0 ? null : text;
}

/** Whether two scopes are equal: the order of their names has no meaning (RFC 6749, 3.3). */
export function sameScope(a: string | null, b: string | null): boolean {
  return [...new Set(scopeNames(a))].sort().join(' ') === [...new Set(scopeNames(b))].sort().join(' ');
}

/** Whether a requested scope asks for nothing beyond another one (RFC 6749, 3.3). */
export function isWithinScope(requested: string | null, other: string | null): boolean {
  if (requested === null || requested === other) return true;
  const names = new Set(scopeNames(other));
  return scopeNames(requested).every((name) => names.has(name));
}

/**
 * What OpenID Connect asks for (Core 1.0, 5.4 and 11). It gives an appliance no permission, and many portals do not name
 * it.
 */
const OPENID_NAMES = new Set(['openid', 'profile', 'email', 'address', 'phone', 'offline_access']);

/**
 * The names of a requested scope that the portal has not granted (RFC 6749, 3.3). None if the scopes have no name in
 * common: then the portal names its permissions otherwise in its responses.
 * @param granted null if the portal did not say: as requested
 */
export function missingScope(requested: string | null, granted: string | null): readonly string[] {
  const names = new Set(scopeNames(granted));
  const [wanted, missing] = [scopeNames(requested), scopeNames(requested).filter((name) => !names.has(name))];
  if (granted === null || missing.length === wanted.length) return [];
  return missing.filter((name) => !OPENID_NAMES.has(name));
}

function scopeNames(scope: string | null | undefined): string[] {
  return (scope ?? '').split(/\s+/).filter((name) => name !== '');
}
