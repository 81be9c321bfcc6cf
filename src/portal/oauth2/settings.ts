import type { CloudProtocol } from '../../clouds/cloud.ts';
import type { Secret } from '../../core/secret.ts';
import type { ResponseRules } from '../responses.ts';
import type { ClientKey } from './client-key.ts';

/** How the hub authenticates at an authorization server (RFC 6749, 2.3; RFC 7523). */
export type ClientAuthMethod = 'basic' | 'post' | 'none' | 'private_key_jwt';

/** How a person logs in. `auto`: by a device code if the portal has that, else by redirect. */
type LoginMethod = 'auto' | 'device' | 'redirect' | 'paste';

/** The endpoints of an authorization server as URLs; null if it does not have one, or it is not known. */
export interface Endpoints {
  readonly authorization: string | null;
  readonly token: string | null;
  readonly deviceAuthorization: string | null;
  readonly revocation: string | null;
}

/** A portal of the kind `oauth2` as configured, with its secrets loaded. Times are in ms. */
export interface OAuth2Settings extends ResponseRules {
  /** The issuer identifier, whose metadata names the endpoints (RFC 8414, 2); null if they are only configured. */
  readonly issuer: string | null;
  /** The configured endpoints, which win over those of the metadata. */
  readonly endpoints: Endpoints;
  readonly clientId: string;
  /** Null: what the metadata offers, else `basic` if there is a secret. */
  readonly clientAuth: ClientAuthMethod | null;
  /** Null for a public client. */
  readonly clientSecret: Secret | null;
  /** Null if the client has no key. */
  readonly clientKey: ClientKey | null;
  readonly login: LoginMethod;
  /** The redirect URI exactly as registered at the portal; null: the hub's own, `http://<address>:<port>/callback`. */
  readonly redirectUri: string | null;
  /** Whether authorization requests use PKCE with S256 (RFC 7636). */
  readonly pkce: boolean;
  /** The scope of a connection that names none, separated by spaces; null if there is none. */
  readonly defaultScope: string | null;
  /** Parameters added to authorization requests. */
  readonly authorizationParams: Readonly<Record<string, string>>;
  /** Parameters added to token requests. */
  readonly tokenParams: Readonly<Record<string, string>>;
  /** Headers added to token and device authorization requests. */
  readonly headers: Readonly<Record<string, Secret>>;
  /** Shortest time between two requests to the token endpoint; null if there is none. */
  readonly minRequestInterval: number | null;
  readonly protocol: CloudProtocol;
}
