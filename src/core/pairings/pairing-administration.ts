import type { CredentialLocation } from '../portal.ts';
import type { PairingFailureReason } from './pairing.ts';
import type { PairingBatch } from './pairing-batch.ts';

/**
 * Why there is a fresh link: the one before is good no longer (`link_ended`), or leads to where the hub was; who has begun to
 * log in through it can go on.
 */
export type LinkRenewalReason = 'link_ended' | 'address_changed';

/** Somebody has come back from a login that the portal itself does not tell of; an installer may confirm that it counts. */
export interface UnconfirmedLogin {
  /** SHA-256 of its code, base64url. */
  readonly id: string;
  /** Where the browser is, an IP address. */
  readonly address: string;
}

/** A pairing as it is followed. */
export type PairingStatus =
  /** The portal was not reached yet; the hub goes on trying. */
  | { readonly event: 'connecting'; readonly problem: string | null; readonly expiresIn: number }
  | {
      readonly event: 'waiting';
      readonly authorizeUrl: string;
      /** Leads to `authorizeUrl` from within the home network; left out while the hub has no address there. */
      readonly shortUrl?: string;
      readonly expiresIn: number;
      /** Why this link takes the place of the one before; left out of the first. */
      readonly reason?: LinkRenewalReason;
      /** Left out while there is none; `latchkey pair --json` does not print it. */
      readonly unconfirmed?: readonly UnconfirmedLogin[];
    }
  | { readonly event: 'paired'; readonly scope: string | null }
  /** `message`: why, and what to do next, for people at the command line. */
  | { readonly event: 'failed'; readonly reason: PairingFailureReason; readonly message: string };

/** A pairing as a page shows it. */
export interface PairingView {
  readonly id: string;
  /** The appliance's name. */
  readonly appliance: string;
  /** What is asked for. */
  readonly scope: string | null;
  /** How it stands; `exchanging`: somebody has logged in, and the portal is asked for the grant. */
  readonly status: PairingStatus | { readonly event: 'exchanging'; readonly expiresIn: number };
  /** A login came to nothing, and another one may follow. */
  readonly lastFailure: 'answer_lost' | 'code_refused' | 'portal_rejected' | null;
  /** Where the hub's client_id and client secret of its portal are to be corrected. */
  readonly credentialLocation: CredentialLocation;
  /** Logins that the portal does not tell of, for an installer to confirm. */
  readonly unconfirmed: readonly UnconfirmedLogin[];
  readonly batch: PairingBatch | null;
  /** The newest pairing of the same appliance, where that is another one. */
  readonly newestPairing: string | null;
}

/** What is printed for the door of an appliance's cabinet. */
export interface ApplianceLabel {
  readonly name: string;
  readonly hubName: string;
  /** Lasts: by the hub's mDNS name, or by the name of the user's own certificate. */
  readonly link: string;
  /** By the address that the hub has now; null while it has none. */
  readonly addressLink: string | null;
}

/** What a page, or the command line, may do about pairings. Each rejects with a Failure where it can't. */
export interface PairingAdministration {
  /** The pairing of an appliance that is open, or else a new one. @returns its id. @throws Failure as `pair` */
  getOrStartPairing(name: string): Promise<string>;
  /** @throws Failure `pairing_unknown` */
  getPairing(id: string): PairingView;
  /** Another pairing of the same appliance, in place of this one. @returns its id. @throws Failure `pairing_unknown`, and as `pair` */
  retryPairing(id: string): Promise<string>;
  /** A login that the portal does not tell of counts; one that is gone changes nothing. @throws Failure `pairing_unknown` */
  confirmLogin(id: string, login: string): void;
  /** Ends a pairing; one that has ended stays as it is. @throws Failure `pairing_unknown` */
  cancelPairing(id: string): Promise<void>;
  /** What changes whenever a pairing does. */
  pairingsVersion(): string;

  /** Begins to pair all appliances that need it, one after the other; goes on with a round that is under way. */
  pairAll(): Promise<PairingBatch>;
  /** Begins the next pairing of a round, unless one of it is open. @throws Failure as `pair` */
  startNextPairing(round: string): Promise<PairingBatch>;
  getBatch(id: string): PairingBatch;

  /** @throws Failure `appliance_unknown` */
  label(name: string): ApplianceLabel;
}
