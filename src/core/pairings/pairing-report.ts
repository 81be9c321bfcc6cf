import type { FailureReason } from './pairing.ts';

/**
 * Why there is a fresh link: the one before is good no longer (`link_ended`), or leads to where the hub was; who has begun to
 * log in through it can go on.
 */
export type FreshLinkReason = 'link_ended' | 'address_changed';

/** Somebody has come back from a login that the portal itself does not tell of; an installer may confirm that it counts. */
export interface UnconfirmedLogin {
  /** SHA-256 of its code, base64url. */
  readonly id: string;
  /** Where the browser is, an IP address. */
  readonly address: string;
}

/** A pairing as it is followed. */
export type PairingReport =
  /** The portal was not reached yet; the hub goes on trying. */
  | { readonly event: 'connecting'; readonly problem: string | null; readonly expiresIn: number }
  | {
      readonly event: 'waiting';
      readonly authorizeUrl: string;
      /** Leads to `authorizeUrl` from within the home network; left out while the hub has no address there. */
      readonly shortUrl?: string;
      readonly expiresIn: number;
      /** Why this link takes the place of the one before; left out of the first. */
      readonly reason?: FreshLinkReason;
      /** Left out while there is none; `latchkey pair --json` does not print it. */
      readonly unconfirmed?: readonly UnconfirmedLogin[];
    }
  | { readonly event: 'paired'; readonly scope: string | null }
  | { readonly event: 'failed'; readonly reason: FailureReason };
