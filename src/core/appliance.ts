import { Failure } from './failure.ts';

/** A device on the home network that needs bearer tokens; towards the hub it is an OAuth client. */
export interface Appliance {
  /** Its OAuth client_id, a UUID. */
  readonly id: string;
  /** What people call it: unique on the hub, see {@link checkName}. */
  readonly name: string;
  /** The scope its grant is asked for, null for none. */
  readonly scope: string | null;
  /** The name of the portal that grants it, a key of the configuration's `portals`. */
  readonly portal: string;
  /** SHA-256 of its client_secret, base64url. The secret has 256 random bits, so a plain hash is enough. */
  readonly secretHash: string;
}

const NAME = /^[a-z0-9][a-z0-9-]{0,62}$/;

/**
 * Takes an appliance's name.
 * @throws Failure `name_invalid`
 */
export function checkName(name: string): string {
  if (NAME.test(name)) return name;
  throw new Failure(
    'name_invalid',
    `${JSON.stringify(name.slice(0, 80))} can't be an appliance's name: use 1 to 63 of a-z, 0-9 and "-", beginning with a letter or digit`,
  );
}

/** RFC 6749 section 3.3: scope-token = 1*( %x21 / %x23-5B / %x5D-7E ). */
const SCOPE_TOKEN = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

/** Characters of a scope: it is part of every token request and of every hand-out. */
const LONGEST_SCOPE = 1000;

/**
 * Takes a scope as a person writes it: names with spaces between them. An empty one counts as none.
 * @throws Failure `scope_invalid`
 */
export function checkScope(scope: string | null | undefined): string | null {
  const names = scopeNames(scope);
  const odd = names.find((name) => !SCOPE_TOKEN.test(name));
  if (odd !== undefined) {
    throw new Failure(
      'scope_invalid',
      `the scope ${JSON.stringify(odd.slice(0, 80))} has a character that scopes can't have: use names such as "Monitoring RemoteControl", without quotes, backslashes or accents`,
    );
  }
  const text = [...new Set(names)].join(' ');
  if (text.length > LONGEST_SCOPE) {
    throw new Failure('scope_invalid', `the scope has ${text.length} characters: at most ${LONGEST_SCOPE} are taken`);
  }
  return names.length === 0 ? null : text;
}

/** Whether two scopes name the same things: their order means nothing (RFC 6749, 3.3). */
export function sameScope(a: string | null, b: string | null): boolean {
  return [...new Set(scopeNames(a))].sort().join(' ') === [...new Set(scopeNames(b))].sort().join(' ');
}

function scopeNames(scope: string | null | undefined): string[] {
  return (scope ?? '').split(/\s+/).filter((name) => name !== '');
}
