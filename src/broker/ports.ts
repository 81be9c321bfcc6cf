import type { Replay } from '../core/grants/retry-delays.ts';
import type { PortalIdentity } from '../core/portal.ts';
import type { HistoryStore, WaitingHistory } from '../core/reports/history.ts';
import type { Store } from '../core/store.ts';
import type { SignInMemory } from './access/setup-access.ts';
import type { Declared } from './appliances/declared-appliances.ts';
import type { Environment } from './environment.ts';
import type { PairingPortal, PairingTimes } from './pairings/pairing-context.ts';
import type { PortalClock } from './time/portal-clock.ts';

/** A store that also says what it has found damaged or changed. */
export interface BrokerStore extends Store, HistoryStore {
  /** Ids of appliances whose grant, or whose own entry, can't be used. */
  readonly damagedGrants: ReadonlySet<string>;
  readonly damagedAppliances: ReadonlySet<string>;
  /** Why nothing can be written, and all is served from memory; null where it can. */
  readonly unwritable: string | null;
  /** What was put in place of a damaged database, in one sentence; null where nothing was. */
  readonly recovered: string | null;
  /** Ids of appliances of which a session was forgotten that the hub has not given, and whether an invite was. */
  readonly refusedSessions: ReadonlySet<string>;
  readonly refusedInvites: boolean;
  /** From now on what waits to be written of an appliance's history goes with whatever else is written of it. */
  takeHistoryFrom(waiting: WaitingHistory): void;
}

/** A portal that the hub is connected to. */
export interface ConnectedPortal extends PairingPortal {
  readonly replay: Replay;
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

/** What a broker hands to the one that takes its place in the same process; all else is in the store. */
export interface BrokerMemory {
  /** The ids of the appliances that the run before had left: see `LanService.knewBefore`. */
  readonly knownBefore: ReadonlySet<string>;
  /** Who has told the true time. */
  readonly portalClock: PortalClock;
  /** Milliseconds for which any appliance may still introduce itself; 0 if registration is closed. */
  readonly registrationOpenFor: number;
  /** How many have registered since it was opened. */
  readonly registrationAsked: number;
  /** One-time sign-in addresses, and who waits because of wrong setup codes. */
  readonly signIns: SignInMemory;
}

/** Everything that the broker needs of the world, so that tests can hold it. */
export interface BrokerPorts {
  readonly environment: Environment;
  readonly store: BrokerStore;
  readonly portals: ConnectedPortals;
  readonly pairingTimes: PairingTimes;
  /** The appliances that the configuration declares. */
  readonly declared: Declared;
  /** Where the refreshes of an appliance's grant lie among those of all hubs: from 0 to 1, always the same (see `dueAt`). */
  readonly jitterOffset: (appliance: string) => number;
  readonly before?: BrokerMemory | undefined;
}
