import type { JSONWebKeySet } from 'jose';
import * as v from 'valibot';
import { systemRandom } from '../../system/random.ts';
import { timingSafeEqualText } from '../../system/secret-hash.ts';
import { BoundedMap } from '../bounded-collections.ts';
import { GRANT_TYPES } from '../grant-types.ts';

/** A registered client, all defaults filled in. */
export interface Client {
  readonly id: string;
  /** Null for a public client. */
  readonly secret: string | null;
  /** The keys for `private_key_jwt`, or null. */
  readonly jwks: JSONWebKeySet | null;
  readonly name: string;
  readonly redirectUrl: 'accept' | 'refuse';
  readonly redirectUris: readonly string[];
  readonly postLogoutRedirectUris: readonly string[];
  readonly claims: Readonly<Record<string, unknown>>;
  /** The generated client, if it has no redirect URI: it may use every http address of this machine. */
  readonly isLocal?: boolean;
}

/** Whether a client has nothing to authenticate with (RFC 6749, 2.1). */
export function isPublic({ secret, jwks }: Client): boolean {
  return secret === null && jwks === null;
}

/**
 * Whether a browser may be sent to an address: an absolute URI in visible ASCII, as a Location needs (RFC 3986, 2),
 * without a fragment (RFC 6749, 3.1.2), and no script. `localhost:3000/` is a forgotten `http://`, and not a scheme.
 */
export function isRedirectUri(address: string): boolean {
  return /^(?!javascript:|data:|[\w.-]+:\d)[\x21\x22\x24-\x7e]+$/i.test(address) && URL.canParse(address);
}

/** A redirect URI. */
export const redirectUri = v.message(
  v.pipe(v.string(), v.check(isRedirectUri)),
  'an absolute URI in visible ASCII, such as http://localhost/callback, without # and not javascript: or data:',
);
/** The public keys of a client (RFC 7517, 5). */
export const jwks = v.looseObject({ keys: v.array(v.looseObject({ kty: v.string() })) });

const addresses = v.pipe(v.array(redirectUri), v.maxLength(20));

/** RFC 7591, 2. Other members are ignored, as the RFC says. */
export const RegistrationMetadata = v.object({
  redirect_uris: v.optional(addresses, []),
  /** OpenID Connect RP-Initiated Logout, 3.1. */
  post_logout_redirect_uris: v.optional(addresses, []),
  client_name: v.optional(v.pipe(v.string(), v.maxLength(200))),
  token_endpoint_auth_method: v.optional(
    v.picklist(['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt']),
    'client_secret_basic',
  ),
  grant_types: v.optional(v.array(v.picklist(GRANT_TYPES)), ['authorization_code']),
  response_types: v.optional(v.array(v.picklist(['code'])), ['code']),
  scope: v.optional(v.string()),
  jwks: v.optional(jwks),
});
export type RegistrationMetadata = v.InferOutput<typeof RegistrationMetadata>;

/** A client that has registered itself (RFC 7591). */
export interface RegisteredClient extends Client {
  /** Authenticates its requests to change its registration (RFC 7592). */
  readonly registrationToken: string;
  /** Milliseconds since 1970. */
  readonly registeredAt: number;
  readonly metadata: RegistrationMetadata;
}

/** Clients kept that have registered themselves. Beyond this, the oldest one is removed. */
const MAX_REGISTERED = 1000;

/** The configured clients, and those that have registered themselves. */
export class ClientRegistry {
  readonly #configured: ReadonlyMap<string, Client>;
  #registered = new BoundedMap<RegisteredClient>(MAX_REGISTERED);

  constructor(configured: ReadonlyMap<string, Client>) {
    this.#configured = configured;
  }

  get(id: string): Client | undefined {
    return this.#configured.get(id) ?? this.#registered.get(id);
  }

  has(id: string): boolean {
    return this.get(id) !== undefined;
  }

  /** An ID that no client has, in words that follow "found". It may be a secret by mistake, which is not shown. */
  describeUnknown(id = ''): string {
    const all = [...this.configured(), ...this.registered()];
    const names = all.slice(0, 20).map((client) => client.id);
    const isSecret = all.some(({ secret }) => secret !== null && (id === secret || id.endsWith(`:${secret}`)));
    const found = isSecret ? 'a secret as client_id' : id === '' ? 'no client_id' : `the client_id ${id.slice(0, 200)}`;
    return `${found}; registered: ${names.join(', ')}`;
  }

  /** Those that have not registered themselves. */
  configured(): Client[] {
    return [...this.#configured.values()];
  }

  /** Adds a client. @param metadata all but what the server chooses */
  register(metadata: Omit<RegisteredClient, 'id' | 'registrationToken'>): RegisteredClient {
    const client = { ...metadata, id: systemRandom.uuid(), registrationToken: systemRandom.token(32) };
    this.#registered.set(client.id, client);
    return client;
  }

  /** The client with this registration access token, or undefined. */
  authenticate(id: string, token: string): RegisteredClient | undefined {
    const client = this.#registered.get(id);
    return timingSafeEqualText(token, client?.registrationToken ?? '') ? client : undefined;
  }

  /** Replaces a client that has registered itself. */
  replace(client: RegisteredClient): void {
    this.#registered.set(client.id, client);
  }

  remove(id: string): void {
    this.#registered.delete(id);
  }

  /** Those that have registered themselves, oldest first. */
  registered(): RegisteredClient[] {
    return this.#registered.values();
  }

  /** Replaces those that have registered themselves. @param saved oldest first */
  restore(saved: readonly RegisteredClient[]): void {
    this.#registered = new BoundedMap(MAX_REGISTERED);
    // A state file of a former version has no such addresses.
    for (const client of saved) this.#registered.set(client.id, { ...{ postLogoutRedirectUris: [] }, ...client });
  }
}
