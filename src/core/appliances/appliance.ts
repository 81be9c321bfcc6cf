import type { Instant } from '../clock.ts';
import { Failure } from '../failure.ts';

/** A device on the home network that needs bearer tokens; towards the hub it is an OAuth client. */
export interface Appliance {
  /** The hub's own name for it, a UUID: it stays when all else changes. */
  readonly id: string;
  /** Its OAuth client_id: unique on the hub. A UUID where the hub chose it, see {@link checkClientId}. */
  readonly clientId: string;
  /** What people call it: unique on the hub, see {@link checkApplianceName}. */
  readonly name: string;
  /** The scope its grant is asked for, null for none. */
  readonly scope: string | null;
  /** The name of the portal that grants it, a key of the configuration's `portals`. */
  readonly portal: string;
  readonly credentials: ClientCredentials;
  /**
   * How the hub came to know it: by `latchkey appliance add`, by its own registration (RFC 7591), or from the
   * configuration, which alone can take it away again.
   */
  readonly origin: ApplianceOrigin;
  /** Since when a registered one waits for an installer to approve it; null where it need not. */
  readonly waitingSince: Instant | null;
  /** Where it registered from, for as long as it waits; left out where that is not known. */
  readonly registeredFrom?: RegistrantAddress;
  /** What it says of its own software (RFC 7591, `software_id`), for the installer to see. */
  readonly softwareId: string | null;
}

/** Where a registration came from. */
export interface RegistrantAddress {
  /** The IP address. */
  readonly address: string;
  /** What it is counted by, the widest first: its link-layer address or network, if a device may take any address there, then the device. */
  readonly shares: readonly string[];
}

type ApplianceOrigin = 'added' | 'registered' | 'declared';

/** How an appliance proves who it is (RFC 6749, 2.3). */
export type ClientCredentials =
  /** `client_secret_basic` or `client_secret_post`. */
  | {
      readonly kind: 'secret';
      /** SHA-256 of the client_secret, base64url. The secret has 256 random bits, so a plain hash is enough. */
      readonly hash: string;
    }
  /** `private_key_jwt` (RFC 7523). */
  | { readonly kind: 'keys'; readonly keys: readonly PublicJwk[] }
  /** None: it was declared once and is no longer, so that its grant is kept and nobody can ask for its tokens. */
  | {
      readonly kind: 'none';
      /** Its row in the store was damaged or changed: even its name may be another's, so it never gets others. */
      readonly damaged?: true;
    };

/** A public key as a JWK (RFC 7517), its private members refused before it gets here. */
export type PublicJwk = Readonly<Record<string, unknown>>;

/** What an appliance is known by at its client authentication. */
const CLIENT_ID = /^[A-Za-z0-9._~-]{1,100}$/;

/**
 * Takes a client_id that a maker chose.
 * @throws Failure `name_invalid`
 */
export function checkClientId(clientId: string): string {
  if (CLIENT_ID.test(clientId)) return clientId;
  throw new Failure(
    'name_invalid',
    `${JSON.stringify(clientId.slice(0, 80))} can't be a client_id: use 1 to 100 of A-Z, a-z, 0-9 and "-._~"`,
  );
}

const APPLIANCE_NAME = /^[a-z0-9][a-z0-9-]{0,62}$/;

/**
 * Takes an appliance's name.
 * @throws Failure `name_invalid`
 */
export function checkApplianceName(name: string): string {
  if (APPLIANCE_NAME.test(name)) return name;
  throw new Failure(
    'name_invalid',
    `${JSON.stringify(name.slice(0, 80))} can't be an appliance's name: use 1 to 63 of a-z, 0-9 and "-", beginning with a letter or digit`,
  );
}

/** RFC 6749 section 3.3: scope-token = 1*( %x21 / %x23-5B / %x5D-7E ). */
const SCOPE_TOKEN = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

/** Characters of a scope: it is part of every token request and of every hand-out. */
const MAX_SCOPE_LENGTH = 1000;

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
  if (text.length > MAX_SCOPE_LENGTH) {
    throw new Failure(
      'scope_invalid',
      `the scope has ${text.length} characters: at most ${MAX_SCOPE_LENGTH} are taken`,
    );
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

/** An appliance that the configuration declares. */
export interface DeclaredAppliance {
  readonly name: string;
  readonly clientId: string;
  readonly scope: string | null;
  /** Null for the default portal. */
  readonly portal: string | null;
  readonly credentials: ClientCredentials;
}
