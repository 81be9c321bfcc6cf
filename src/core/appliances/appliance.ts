import type { Instant } from '../clock.ts';
import { Failure } from '../failure.ts';

/** A device on the home network that needs access tokens. Towards the hub it is an OAuth client. */
export interface Appliance {
  /** The hub's internal id, a UUID. It never changes. */
  readonly id: string;
  /** Its OAuth client_id, unique on the hub. A UUID if the hub chose it, see {@link checkClientId}. */
  readonly clientId: string;
  /** Its name for people, unique on the hub, see {@link checkApplianceName}. */
  readonly name: string;
  /** The scope that the hub requests for its grant; null for none. */
  readonly scope: string | null;
  /** The name of its portal, a key of the configuration's `portals`. */
  readonly portal: string;
  readonly credentials: ClientCredentials;
  /**
   * How it was added: by `latchkey appliance add`, by registration (RFC 7591), or by the configuration. A declared
   * appliance can only be removed in the configuration.
   */
  readonly origin: ApplianceOrigin;
  /** Since when a registered appliance waits for an installer's approval; null if it does not wait. */
  readonly waitingSince: Instant | null;
  /** Where it registered from, while it waits; left out if that is unknown. */
  readonly registeredFrom?: RegistrantAddress;
  /** Its `software_id` (RFC 7591, 2), which the installer sees. */
  readonly softwareId: string | null;
}

/** Where a registration came from. */
export interface RegistrantAddress {
  /** The IP address. */
  readonly address: string;
  /**
   * The keys of its quotas, the widest first. For an IPv6 address on the hub's own networks, where a device may take
   * any address: its link-layer address, or its network if that is unknown, then the address. Otherwise a single key:
   * the IPv4 address, or the network of a remote IPv6 address.
   */
  readonly shares: readonly string[];
}

type ApplianceOrigin = 'added' | 'registered' | 'declared';

/** How an appliance authenticates (RFC 6749, 2.3). */
export type ClientCredentials =
  /** `client_secret_basic` or `client_secret_post`. */
  | {
      readonly kind: 'secret';
      /** SHA-256 of the client_secret, base64url. The secret has 256 random bits, so a plain hash is enough. */
      readonly hash: string;
    }
  /** `private_key_jwt` (RFC 7523). */
  | { readonly kind: 'keys'; readonly keys: readonly PublicJwk[] }
  /** None: the configuration no longer declares it. The hub keeps its grant, but nobody can request its tokens. */
  | {
      readonly kind: 'none';
      /**
       * Its row in the store was damaged or changed. It never gets new credentials, because even its name may be wrong.
       */
      readonly damaged?: true;
    };

/** A public key as a JWK (RFC 7517). The parser has rejected keys with private members. */
export type PublicJwk = Readonly<Record<string, unknown>>;

const CLIENT_ID = /^[A-Za-z0-9._~-]{1,100}$/;

/**
 * Checks a client_id that a maker chose, and returns it.
 * @throws Failure `name_invalid`
 */
export function checkClientId(clientId: string): string {
  if (CLIENT_ID.test(clientId)) return clientId;
  throw new Failure(
    'name_invalid',
    `${JSON.stringify(clientId.slice(0, 80))} is not a valid client_id: use 1 to 100 of A-Z, a-z, 0-9 and "-._~"`,
  );
}

const APPLIANCE_NAME = /^[a-z0-9][a-z0-9-]{0,62}$/;

/**
 * Checks an appliance's name, and returns it.
 * @throws Failure `name_invalid`
 */
export function checkApplianceName(name: string): string {
  if (APPLIANCE_NAME.test(name)) return name;
  throw new Failure(
    'name_invalid',
    `${JSON.stringify(name.slice(0, 80))} is not a valid appliance name: use 1 to 63 of a-z, 0-9 and "-", beginning with a letter or digit`,
  );
}

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
