import type { Instant } from '../clock.ts';
import type { Secret } from '../secret.ts';
import type { PublicJwk } from './appliance.ts';

/** The record of an initial access token (RFC 7591, 3): one appliance may register with it, once. */
export interface Invite {
  /** SHA-256 of the token, base64url: it has 256 random bits. */
  readonly hash: string;
  /** What the installer calls the appliance: its title, see {@link Named}; null if it may choose. */
  readonly name: string | null;
  /** The scope of the appliance; null if it may choose. */
  readonly scope: string | null;
  readonly portal: string;
  /** The id of the connection that the appliance is to use; left out for one of its own. */
  readonly connection?: string;
  readonly begun: Instant;
  /** Milliseconds from `begun` to the expiry. */
  readonly lifetime: number;
}

/** The client metadata of a registration (RFC 7591, 2) that the hub uses. */
export interface ClientMetadata {
  readonly clientName: string | null;
  readonly scope: string | null;
  readonly softwareId: string | null;
  /** Public keys for `private_key_jwt`; null if the hub issues a secret instead. */
  readonly keys: readonly PublicJwk[] | null;
}

/** The result of a registration. */
export type RegistrationResult =
  | {
      readonly kind: 'registered';
      readonly clientId: string;
      readonly name: string;
      readonly scope: string | null;
      /** Null if the appliance has its own keys. */
      readonly secret: Secret | null;
      /** Whether an installer still has to approve the appliance. */
      readonly needsApproval: boolean;
    }
  /** Registration is closed, and the request has no initial access token. */
  | { readonly kind: 'closed' }
  /** The initial access token is wrong, used up or expired. */
  | { readonly kind: 'token_refused' }
  /** Too many appliances wait for approval; `retryAfter` in whole seconds. */
  | { readonly kind: 'full'; readonly retryAfter: number }
  /** The metadata is invalid; `description` is one sentence. */
  | { readonly kind: 'invalid'; readonly description: string };
