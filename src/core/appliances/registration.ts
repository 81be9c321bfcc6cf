import type { Instant } from '../clock.ts';
import type { Secret } from '../secret.ts';
import type { PublicJwk } from './appliance.ts';

/** What stands behind an initial access token (RFC 7591, 3): one appliance may register with it, once. */
export interface Invite {
  /** SHA-256 of the token, base64url: it has 256 random bits. */
  readonly hash: string;
  /** What the appliance is to be called; null where it may choose. */
  readonly name: string | null;
  /** The scope its grant is to be asked for; null where it may choose. */
  readonly scope: string | null;
  readonly portal: string;
  readonly begun: Instant;
  /** Milliseconds from `begun` on. */
  readonly lifetime: number;
}

/** What an appliance says of itself (RFC 7591, 2), as far as the hub takes it. */
export interface ClientMetadata {
  readonly clientName: string | null;
  readonly scope: string | null;
  readonly softwareId: string | null;
  /** Its public keys, for `private_key_jwt`; null where the hub is to give it a secret. */
  readonly keys: readonly PublicJwk[] | null;
}

/** What became of a registration. */
export type RegistrationResult =
  | {
      readonly kind: 'registered';
      readonly clientId: string;
      readonly name: string;
      readonly scope: string | null;
      /** Null where it has keys of its own. */
      readonly secret: Secret | null;
      /** Whether an installer still has to approve it. */
      readonly needsApproval: boolean;
    }
  /** Nobody holds registration open, and no initial access token came along. */
  | { readonly kind: 'closed' }
  /** The initial access token is wrong, used up or too old. */
  | { readonly kind: 'token_refused' }
  /** Too many wait already; `retryAfter` in whole seconds. */
  | { readonly kind: 'full'; readonly retryAfter: number }
  /** What it says of itself can't be taken, in one sentence. */
  | { readonly kind: 'invalid'; readonly description: string };

/** Characters of an appliance's name. */
const MAX_NAME_LENGTH = 63;

/**
 * The name that a registered appliance gets: its `client_name` in lower case and without accents, everything but a-z and
 * 0-9 made "-", cut to 63 characters; `appliance` where nothing is left; with "-2", "-3" and so on behind it where the
 * name is taken.
 */
export function deriveApplianceName(clientName: string | null, taken: (name: string) => boolean): string {
  const plain = (clientName ?? '')
    .slice(0, 1000)
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '');
  const base = plain.slice(0, MAX_NAME_LENGTH).replace(/-+$/, '') || 'appliance';
  if (!taken(base)) return base;
  for (let number = 2; ; number++) {
    const end = `-${number}`;
    const name = base.slice(0, MAX_NAME_LENGTH - end.length) + end;
    if (!taken(name)) return name;
  }
}
