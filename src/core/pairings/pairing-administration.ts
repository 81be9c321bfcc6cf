import { Failure } from '../failure.ts';
import type { RejectedResponseReason } from '../lan-service.ts';
import type { Named } from '../name.ts';
import type { CredentialLocation } from '../portals/identity.ts';
import type { ShownLink } from '../portals/login-link.ts';
import type { Pairing, PairingFailureReason } from './pairing.ts';
import type { PairingBatch } from './pairing-batch.ts';

/**
 * Why there is a new link: the previous one is no longer valid (`link_ended`), or it redirects to the hub's old
 * address. A login that was begun with the previous one can continue.
 */
export type LinkRenewalReason = 'link_ended' | 'address_changed';

/** A browser brought the code of a login that the portal itself does not report; an installer may confirm it. */
export interface UnconfirmedLogin {
  /** SHA-256 of the code, base64url. */
  readonly id: string;
  /** The browser's IP address. */
  readonly address: string;
}

/** The progress of a pairing, as {@link PairingAdministration.followPairing} reports it. */
export type PairingStatus =
  /** The hub has not reached the portal yet, and keeps trying. */
  | { readonly event: 'connecting'; readonly problem: string | null; readonly expiresIn: number }
  | ({
      readonly event: 'waiting';
      /**
       * The short link: it redirects to `authorizeUrl`, in the home network only; left out while the hub has no address
       * there.
       */
      readonly shortUrl?: string;
      /** The portal does not send the browser to the hub after the login; left out if it does. */
      readonly endsAtPortal?: true;
      /** The login ends with a redirect, so the address on which a browser ends can be pasted; left out if not. */
      readonly acceptsAddress?: true;
      /** Seconds until a person can no longer log in through this link. */
      readonly expiresIn: number;
      /** A fresh link follows then, because the portal's code lives for less time than the pairing; left out if not. */
      readonly isRenewed?: true;
      /** Why this link replaces the previous one; left out for the first link. */
      readonly reason?: LinkRenewalReason;
      /** Why the last login failed, after which the link can be opened again; left out if none failed. */
      readonly lastFailure?: PairingFailureReason;
      /** Left out if there are none; `latchkey pair --json` does not print them. */
      readonly unconfirmed?: readonly UnconfirmedLogin[];
    } & ShownLink)
  /** `missingScope`: what was requested and the portal did not grant; left out if nothing. */
  | { readonly event: 'paired'; readonly scope: string | null; readonly missingScope?: readonly string[] }
  /** `message`: why it failed and what to do next, for people at the command line. */
  | { readonly event: 'failed'; readonly reason: PairingFailureReason; readonly message: string };

/** A pairing as a page shows it. */
export interface PairingView {
  readonly id: string;
  /** The appliance's name. */
  readonly connection: string;
  /** The requested scope. */
  readonly scope: string | null;
  /** The progress; `exchanging`: somebody has logged in, and the hub exchanges the code for tokens. */
  readonly status: PairingStatus | { readonly event: 'exchanging'; readonly expiresIn: number };
  /** Why the last login failed; another one may follow. Null if none failed. */
  readonly lastFailure: Pairing['lastFailure'];
  /** The name of the portal where the person logs in; null if the hub has only one. */
  readonly portal: string | null;
  /** Where a person corrects the hub's client_id and client secret for the portal. */
  readonly credentialLocation: CredentialLocation;
  /** Logins that the portal does not report, for an installer to confirm. */
  readonly unconfirmed: readonly UnconfirmedLogin[];
  readonly batch: PairingBatch | null;
  /** The id of the newest pairing of the same appliance; null if it is this one. */
  readonly newestPairing: string | null;
}

/** A label to print for the door of an appliance's cabinet. */
export interface ApplianceLabel extends Named {
  readonly hubName: string;
  /** A permanent link, by the hub's mDNS name or by the name of the owner's own certificate. */
  readonly link: string;
  /** A link by the hub's current address; null while it has none. */
  readonly addressLink: string | null;
}

/**
 * Why a pasted address was not used: as {@link RejectedResponseReason}, or the pairing has ended (`ended`), the address
 * is not that of a finished login (`malformed`), or no open pairing has its `state` (`unknown`).
 */
export type RejectedAddressReason = RejectedResponseReason | 'ended' | 'malformed' | 'unknown';

/** A pasted address that was not used. */
export class AddressRejection extends Failure {
  readonly reason: RejectedAddressReason;

  constructor(reason: RejectedAddressReason, summary: string, advice: string) {
    super('address_rejected', summary, { advice });
    this.reason = reason;
  }
}

/** The operations on pairings, for the page and the command line. Each rejects with a Failure if it is not possible. */
export interface PairingAdministration {
  /**
   * Starts a pairing of a connection.
   * @returns its id, for {@link followPairing}.
   * @throws Failure `connection_unknown`; `not_allowed` if the connection is damaged, or its only appliance not approved
   */
  pair(name: string): Promise<string>;
  /**
   * Follows a pairing: yields its status now and after every change, until it has ended or the signal is aborted.
   * @throws Failure `pairing_unknown`
   */
  followPairing(id: string, signal: AbortSignal): AsyncIterable<PairingStatus>;
  /** The open pairing of an appliance, or a new one if none is open. @returns its id. @throws Failure as `pair` */
  getOrStartPairing(name: string): Promise<string>;
  /** @returns the id of a connection's open pairing. @throws Failure `pairing_unknown` if none is open */
  getOpenPairing(name: string): Promise<string>;
  /** @throws Failure `pairing_unknown` */
  getPairing(id: string): PairingView;
  /**
   * Another pairing of the same appliance, in place of this one.
   * @returns its id.
   * @throws Failure `pairing_unknown`, and as `pair`
   */
  retryPairing(id: string): Promise<string>;
  /**
   * Accepts a login that the portal does not report; an unknown login changes nothing.
   * @throws Failure `pairing_unknown`
   */
  confirmLogin(id: string, login: string): void;
  /**
   * Hands the address on which a browser ended after a login to a pairing, and waits some seconds for its result.
   * @throws Failure `pairing_unknown`, or an {@link AddressRejection}
   */
  pasteAddress(id: string, address: string): Promise<void>;
  /** Ends a pairing; does nothing if it has ended. @throws Failure `pairing_unknown` */
  cancelPairing(id: string): Promise<void>;
  /** A text that changes whenever a pairing changes. */
  pairingsVersion(): string;

  /** Starts to pair all appliances that need it, one after the other, or continues the open batch. */
  pairAll(): Promise<PairingBatch>;
  /** Starts the next pairing of a batch, unless one of its pairings is open. @throws Failure as `pair` */
  startNextPairing(batch: string): Promise<PairingBatch>;
  getBatch(id: string): PairingBatch;

  /** @throws Failure `appliance_unknown` */
  label(name: string): ApplianceLabel;
}
