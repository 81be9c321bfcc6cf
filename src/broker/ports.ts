import type { UsageStore } from '../core/appliances/usage.ts';
import type { Clock, Timers } from '../core/clock.ts';
import type { PortalPolicy } from '../core/grants/login-end.ts';
import type { Log } from '../core/log.ts';
import type { ConfiguredPortal, CredentialLocation, PortalIdentity } from '../core/portals/identity.ts';
import type { Portal } from '../core/portals/portal.ts';
import type { Random } from '../core/random.ts';
import type { EmitEvent, HistoryStore } from '../core/reports/history.ts';
import type { SiteStore } from '../core/site.ts';
import type { Store } from '../core/store.ts';

/** The environment of the broker, passed in so that tests can replace it. */
export interface Environment {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly log: Log;
  /** Emits what happens to an appliance, for its history, the metrics and the notices. */
  readonly emit: EmitEvent;
}

/** The store as the hub uses it, on SQLite or on PostgreSQL. */
export interface BrokerStore extends Store {
  readonly history: HistoryStore;
  readonly usage: UsageStore;
  /** What the hub shares with the other hubs of its site; null if it is alone, with SQLite. */
  readonly site: SiteStore | null;
  /** Why nothing can be written and everything is served from memory; null if the store can be written. */
  readonly writeProblem: string | null;
  /** What people are told if it can't be written: a full disk and a database that is away need different things. */
  readonly writeProblemCode: 'store_unwritable' | 'database_unavailable';
  /** What replaced a damaged database, in one sentence; null if nothing did. */
  readonly recoverySummary: string | null;
}

/** A portal that the hub is connected to. */
export interface ConnectedPortal extends PortalPolicy {
  readonly portal: Portal;
  readonly identity: ConfiguredPortal;
  readonly credentialLocation: CredentialLocation;
  /** The scope of a connection that names none; left out if there is none. */
  readonly defaultScope?: string;
  /** The name of its preset; left out if it has none. */
  readonly preset?: string;
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
