import type { RetryLostAnswer } from '../core/grants/retry-delays.ts';
import type { ConfiguredPortal, CredentialLocation, Portal, PortalIdentity } from '../core/portal.ts';
import type { HistoryStore, PendingHistory } from '../core/reports/history.ts';
import type { Store } from '../core/store.ts';

/** A store that also says what it has found damaged or changed. */
export interface BrokerStore extends Store, HistoryStore {
  /** Ids of appliances whose grant, or whose own entry, can't be used. */
  readonly damagedGrants: ReadonlySet<string>;
  readonly damagedAppliances: ReadonlySet<string>;
  /** Why nothing can be written, and all is served from memory; null where it can. */
  readonly writeProblem: string | null;
  /** What was put in place of a damaged database, in one sentence; null where nothing was. */
  readonly recoverySummary: string | null;
  /** Ids of appliances of which a session was forgotten that the hub has not given, and whether an invite was. */
  readonly rejectedSessions: ReadonlySet<string>;
  readonly hasRejectedInvites: boolean;
  /** From now on what waits to be written of an appliance's history goes with whatever else is written of it. */
  setHistorySource(waiting: PendingHistory): void;
}

/** A portal that the hub is connected to. */
export interface ConnectedPortal {
  readonly portal: Portal;
  readonly identity: ConfiguredPortal;
  readonly credentialLocation: CredentialLocation;
  readonly retryLostAnswer: RetryLostAnswer;
  /**
   * Where the portal shall bring the code, for a nonce; null while there is no address to be reached at, or where the
   * configuration wants none. Without the nonce (`''`) it says where a link leads, see `LoginLink`.
   */
  redirectUrl(nonce: string): string | null;
}

/** An appliance by its name, and its portal. */
export interface AppliancePortal extends ConnectedPortal {
  readonly name: string;
}

/** The portals that there are. */
export interface ConnectedPortals {
  /** Their names, the default one first. */
  readonly names: readonly string[];
  /** Always the same object for a name. */
  get(name: string): ConnectedPortal | undefined;
  /** The name of the one with this identity; undefined if none has it. */
  nameOf(identity: PortalIdentity): string | undefined;
}

/** Times of pairings, in ms. */
export interface PairingTimes {
  readonly lifetime: number;
  readonly pollInterval: number;
}
