import type { LostAnswerRetry } from '../core/grants/retry-delays.ts';
import type { ConfiguredPortal, CredentialLocation, Portal, PortalIdentity } from '../core/portal.ts';
import type { HistoryStore, PendingHistory } from '../core/reports/history.ts';
import type { Store } from '../core/store.ts';

/** A store that also reports what it found damaged or changed. */
export interface BrokerStore extends Store, HistoryStore {
  /** Ids of appliances whose grant, or whose own entry, can't be used. */
  readonly damagedGrants: ReadonlySet<string>;
  readonly damagedAppliances: ReadonlySet<string>;
  /** Why nothing can be written and everything is served from memory; null if the store can be written. */
  readonly writeProblem: string | null;
  /** What replaced a damaged database, in one sentence; null if nothing did. */
  readonly recoverySummary: string | null;
  /** Ids of the appliances with a session that the hub has not issued; such sessions are rejected. */
  readonly rejectedSessions: ReadonlySet<string>;
  /** Whether an invite was found, and rejected, that the hub has not issued. */
  readonly hasRejectedInvites: boolean;
  /** From now on every write for an appliance also writes its pending history. */
  setHistorySource(waiting: PendingHistory): void;
}

/** A portal that the hub is connected to. */
export interface ConnectedPortal {
  readonly portal: Portal;
  readonly identity: ConfiguredPortal;
  readonly credentialLocation: CredentialLocation;
  readonly retryLostAnswer: LostAnswerRetry;
  /**
   * The redirect URL for a nonce; null while the hub has no address, or if the configuration has redirects turned off.
   * With an empty nonce (`''`) it identifies the address that a link redirects to, see `LoginLink`.
   */
  redirectUrl(nonce: string): string | null;
}

/** The portal of an appliance, with the appliance's name. */
export interface AppliancePortal extends ConnectedPortal {
  readonly name: string;
}

/** The configured portals. */
export interface ConnectedPortals {
  /** Their names, the default one first. */
  readonly names: readonly string[];
  /** Returns the same object for a name each time. */
  get(name: string): ConnectedPortal | undefined;
  /** The name of the portal with this identity; undefined if there is none. */
  nameOf(identity: PortalIdentity): string | undefined;
}

/** Durations for pairings, in ms. */
export interface PairingTimes {
  readonly lifetime: number;
  readonly pollInterval: number;
}
