import type { Instant } from '../clock.ts';
import { Failure } from '../failure.ts';
import type { Named } from '../name.ts';

/** A device on the home network that needs access tokens. Towards the hub it is an OAuth client. */
export interface Appliance extends Named {
  /** The hub's internal id, a UUID. It never changes. */
  readonly id: string;
  /** Its OAuth client_id, unique on the hub. A UUID if the hub chose it, see {@link checkClientId}. */
  readonly clientId: string;
  /** The id of the connection whose tokens it gets; the first one if there are several. */
  readonly connection: string;
  /** The ids of further connections, one of which a token request names. Left out if there are none. */
  readonly more?: readonly string[];
  /** Whether its requests for a token may name any scope, such as a fixed `…/.default`: the hub then ignores it. */
  readonly ignoresScope?: true;
  readonly credentials: ClientCredentials;
  /**
   * How it was added: by `latchkey appliance add`, by registration (RFC 7591), or by the configuration. A declared
   * appliance can only be removed in the configuration.
   */
  readonly origin: ApplianceOrigin;
  /**
   * Since when a registered appliance waits for an installer's approval, and the address that it registered from (for an
   * IPv6 address outside the hub's networks the /64 network); null if it does not wait.
   */
  readonly waiting: { readonly since: Instant; readonly from: string } | null;
  /** Its `software_id` (RFC 7591, 2), which the installer sees. */
  readonly softwareId: string | null;
}

/** The ids of the connections that an appliance uses. A further one may have been removed. */
export function connectionIds({ connection, more = [] }: Pick<Appliance, 'connection' | 'more'>): readonly string[] {
  return [connection, ...more];
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

/** An appliance that the configuration declares. */
export interface DeclaredAppliance {
  readonly name: string;
  readonly clientId: string;
  /** The names of the declared connections that it uses; empty if it has one of its own, with `portal` and `scope`. */
  readonly connections: readonly string[];
  readonly scope: string | null;
  /** Null for the default portal. */
  readonly portal: string | null;
  readonly ignoresScope?: true;
  readonly credentials: ClientCredentials;
}

/** How a new appliance gets its tokens: from an existing connection, or from one of its own. */
export interface ConnectionChoice {
  /** The names of existing connections; empty for a connection of its own. */
  readonly connections: readonly string[];
  /** The scope of its own connection; beside one of `connections` it must be that one's. */
  readonly scope: string | null;
  /** The portal of its own connection, null for the default one; beside one of `connections` it must be that one's. */
  readonly portal: string | null;
  /** See {@link Appliance.ignoresScope}. */
  readonly ignoresScope?: true;
}
