/** The setting with the certificate that a hub serves, and its key. */
export const LEAF_SETTING = 'leaf';

/** The setting with the notices that a hub has sent about itself. */
export const HUB_NOTICES_SETTING = 'notices_of_hub';

/** On a site: the setting with what the configuration of a hub declared at its last start. */
export const OWN_DECLARATIONS_SETTING = 'own_declarations';

/** On a site: the setting with the site's id, which it keeps for ever. */
export const SITE_ID_SETTING = 'site_id';

/** On a site: the setting whose only purpose is to show whether a hub has the site's store key. */
export const KEY_CHECK_SETTING = 'key_check';

/** The settings that each hub of a site has for itself; all others are those of the site. */
export const HUB_SETTINGS: ReadonlySet<string> = new Set([
  'hub_id',
  LEAF_SETTING,
  HUB_NOTICES_SETTING,
  OWN_DECLARATIONS_SETTING,
]);

/**
 * What other hubs of a site have changed; ids, or names of settings. What is listed may also be unchanged or removed.
 */
export interface SiteNews {
  /** Whether connections or appliances have changed. */
  readonly registry: boolean;
  /** Ids of appliances whose sessions have changed. */
  readonly sessions: ReadonlySet<string>;
  readonly pairings: ReadonlySet<string>;
  /** Ids of connections whose grant or refresh attempt has changed. */
  readonly grants: ReadonlySet<string>;
  readonly settings: ReadonlySet<string>;
  /** Whether invites have changed. */
  readonly invites: boolean;
  /** Anything may have changed: all of it must be read again. */
  readonly all: boolean;
}

/** Everything may have changed. */
export const ALL_NEWS: SiteNews = {
  registry: false,
  sessions: new Set(),
  pairings: new Set(),
  grants: new Set(),
  settings: new Set(),
  invites: false,
  all: true,
};

/** The form of a hub's id: a DNS label, because the hub is found as `<id>.local`. */
export const HUB_ID = /^[a-z][a-z0-9-]{0,62}$/;

/** A hub of a site, as the others see it. Times are ms since 1970 by the database's clock. */
export interface SiteHub {
  readonly id: string;
  readonly name: string;
  /** The address on the home network; null while it has none. */
  readonly address: string | null;
  readonly version: string;
  readonly lastSeen: number;
  /** Whether it was seen in the last 15 s. */
  readonly isAlive: boolean;
}

/** What a hub says about itself to the others. */
export type OwnSiteEntry = Pick<SiteHub, 'name' | 'address' | 'version'>;

/**
 * Work of a site that one hub does for all: reporting notices; and deleting what no hub needs any more, and appliances
 * that nobody has approved in time.
 */
export type SiteWork = 'notices' | 'cleanup';

/** What a store tells that several hubs share. */
export interface StoreWatcher {
  /** The news of other hubs, in order; one call at a time. */
  news?(news: SiteNews): Promise<void>;
  /** The database can no longer be used. */
  outage?(): void;
  /** The database can be used again after it could not, after the news of that time. */
  returned?(): void;
  /** A hub of the site has come or gone. */
  hubsChanged?(): void;
  /**
   * A backup was restored into the site by another hub, or perhaps by this one, which could not learn that at that time:
   * the hub must start again.
   */
  restored?(): void;
}

/** The part of a store that several hubs share. Every method rejects with a Failure like those of {@link Store}. */
export interface SiteStore {
  /** The id of this hub. */
  readonly hubId: string;
  /** The site's id, such as `site-5f0c9a1e`. */
  readonly siteId: string;
  /** The hubs as they were last read, this one included, by id. */
  readonly hubs: readonly SiteHub[];

  /** What {@link OwnSiteEntry} is from now on. It is written at once if the database can be used. */
  announce(entry: OwnSiteEntry): void;
  /** Removes a hub from the list, and its settings; it comes back when it is seen again. */
  removeHub(id: string): Promise<void>;
  /** Deletes what no hub needs any more. */
  cleanUp(): Promise<void>;
  /** Ends the exclusion of other hubs that start: call it when this hub has loaded everything. */
  startupDone(): Promise<void>;
}
