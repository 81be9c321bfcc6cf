import type { ConnectionChoice } from './appliances/appliance.ts';
import { APPLIANCE_FIELDS, type ApplianceStatus } from './appliances/appliance-status.ts';
import type { RestoredGrants } from './backup-contents.ts';
import type { ConnectionAdministration } from './connections/connection-administration.ts';
import { CONNECTION_FIELDS, type ConnectionStatus } from './connections/connection-status.ts';
import type { Condition } from './health/condition.ts';
import type { HubProblemCode } from './health/hub-conditions.ts';
import type { HookTestResult, Notice } from './health/notice.ts';
import type { Named } from './name.ts';
import type { PairingAdministration } from './pairings/pairing-administration.ts';
import type { PortalAdministration } from './portals/portal-administration.ts';
import type { PreparedReload, ReloadOutcome } from './reload.ts';
import type { Secret } from './secret.ts';
import type { SetupCodeAdministration } from './setup-access.ts';
import type { StatusField } from './status-field.ts';

/** The hub in `status`; ports and address are the ones in use. */
export interface HubStatus {
  readonly id: string;
  readonly name: string;
  readonly version: string;
  /** Null while the hub has no address in the home network. */
  readonly address: string | null;
  readonly httpPort: number;
  readonly httpsPort: number;
  /** The port for programs on this machine; left out if there is none. */
  readonly localPort?: number;
  /** The port of metrics and health; left out if the listener is off. */
  readonly metricsPort?: number;
  readonly caFingerprint: string;
  /**
   * The old CA after a rotation. Appliances that trust only the old CA are served until `until` (RFC 3339 UTC; null
   * while the clock is not confirmed). Left out if there is no old CA.
   */
  readonly caRotation?: { readonly oldFingerprint: string; readonly until: string | null };
  /** Seconds since the daemon was started. */
  readonly uptime: number;
  /** The path of the configuration file, which may not exist. */
  readonly configFile: string;
  /** The portal is an emulator in the same process, and nothing is kept after the process ends; left out otherwise. */
  readonly testMode?: true;
  /** Seconds for which any appliance may still register; left out while registration is closed. */
  readonly registrationOpenFor?: number;
  /**
   * How many appliances have registered since registration was last opened. Left out if there are none, or if
   * registration is closed and no appliance waits for approval.
   */
  readonly registrationAsked?: number;
  /** The problems of the hub as a whole; left out if there are none. */
  readonly problems?: readonly HubProblem[];
}

/** How surfaces show fields of the hub. */
export const HUB_FIELDS = {
  version: { member: 'version', kind: 'text', isOnPage: true },
  uptime: {
    member: 'uptime',
    kind: 'seconds_since',
    heading: 'running for',
    metric: { name: 'latchkey_hub_uptime_seconds', help: 'Seconds since the daemon started.' },
  },
} as const satisfies Partial<Record<keyof HubStatus, StatusField>>;

/** How surfaces show the fields of the hub, its connections and its appliances. */
export const STATUS_FIELDS: Readonly<Record<string, StatusField>> = {
  ...HUB_FIELDS,
  ...CONNECTION_FIELDS,
  ...APPLIANCE_FIELDS,
};

/** A hub of a site, in `status`. */
export interface SiteHubStatus {
  readonly id: string;
  readonly name: string;
  /** Null while it has no address in the home network. */
  readonly address: string | null;
  readonly version: string;
  /** RFC 3339 UTC, by the database's clock; of this hub while the database is away, when it was last written. */
  readonly lastSeen: string;
  /** The hub that reports this; left out otherwise. */
  readonly thisHub?: true;
}

/** The site in `status`; its hubs by name. */
export interface SiteStatus {
  readonly id: string;
  readonly hubs: readonly SiteHubStatus[];
}

/** The state of the hub, its connections and its appliances. */
export interface StatusReport {
  readonly hub: HubStatus;
  /** Left out if the hub is alone. */
  readonly site?: SiteStatus;
  readonly connections: readonly ConnectionStatus[];
  readonly appliances: readonly ApplianceStatus[];
  /** All conditions, the most severe first; every surface shows these. */
  readonly conditions: readonly Condition[];
  /** The open notices. */
  readonly notices: readonly Notice[];
}

/** The CA of the hub's server certificate. */
export interface CaStatus {
  /** PEM. */
  readonly certificate: string;
  /** The CA pin: base64url SHA-256 of its public key. */
  readonly fingerprint: string;
  /** The old CA, while appliances that trust only that one are served; `until` as in {@link HubStatus.caRotation}. */
  readonly old?: { readonly certificate: string; readonly fingerprint: string; readonly until: string | null };
}

/** A problem of the hub as a whole; `since` in RFC 3339 UTC. */
export interface HubProblem {
  readonly code: HubProblemCode;
  readonly message: string;
  readonly since: string;
}

/** An appliance's credentials, shown once. */
export interface IssuedCredentials extends Named {
  readonly clientId: string;
  readonly clientSecret: Secret;
  readonly tokenEndpoint: string;
  readonly caFingerprint: string;
}

/** A request for an invite. */
export interface InviteRequest {
  /** What the appliance is called: a title, see {@link Named}; null if it may choose. */
  readonly name: string | null;
  readonly scope: string | null;
  readonly portal: string | null;
  /** The name of the connection that the appliance is to use; null for one of its own. */
  readonly connection: string | null;
  /** Seconds until the invite expires. */
  readonly ttl: number;
}

/** An invite, shown once. */
export interface IssuedInvite extends RegistrationEndpoint {
  /** The initial access token (RFC 7591, 3). */
  readonly token: Secret;
  readonly name: string | null;
  readonly scope: string | null;
  /** Seconds. */
  readonly expiresIn: number;
}

/** Where appliances register, and the CA pin of the hub. */
export interface RegistrationEndpoint {
  readonly registrationEndpoint: string;
  readonly caFingerprint: string;
}

/** A backup of the hub's state. */
export interface Backup {
  /** The content of the backup file: ASCII, encrypted with the passphrase. */
  readonly copy: string;
  /** RFC 3339 UTC. */
  readonly made: string;
  readonly appliances: number;
  readonly grants: number;
}

/** The snapshot of the store, in the hub's own state directory. */
export interface SnapshotReport {
  /** The path of the file. */
  readonly file: string;
  /** RFC 3339 UTC. */
  readonly made: string;
}

/** The result of restoring a backup. */
export interface RestoreReport extends RestoredGrants {
  /** When the backup was made, RFC 3339 UTC. */
  readonly made: string;
  /** The hub's id from now on. */
  readonly hubId: string;
}

/** The result of a store key rotation. */
export interface StoreKeyRotationResult {
  /** Files that only the old key opens: older stores, kept for people. */
  readonly leftovers: readonly string[];
  /** Why no snapshot was written; null if it was. */
  readonly snapshotProblem: string | null;
  /** Whether the key is a systemd credential, so that the owner must replace the old one with it. */
  readonly isCredential: boolean;
}

/**
 * The operations for people at the hub. Every method may reject with a Failure `appliance_unknown`, `name_invalid` or
 * `store_unwritable`, and with the codes that its docstring names.
 */
export interface Administration
  extends SetupCodeAdministration,
    ConnectionAdministration,
    PairingAdministration,
    PortalAdministration {
  /**
   * The same operations in the name of a user, for the log and the history.
   * @param user the name, as a reverse proxy reports it
   */
  asUser(user: string): Administration;
  status(): Promise<StatusReport>;
  /**
   * Removes a hub from the list of its site; it comes back when it is seen again.
   * @param name its name or id
   * @throws Failure `request_invalid` if there is none, or several have the name; `not_allowed` if it runs, or there is
   * no site
   */
  removeHub(name: string): Promise<void>;
  /** Sends a test notice through each configured hook. @returns one result per hook */
  testNotices(): Promise<HookTestResult[]>;
  caStatus(): CaStatus;
  /**
   * Creates a new CA.
   * @param keep for how many seconds the hub still serves appliances that trust only the old CA
   * @throws Failure `not_allowed` if the hub serves the owner's own certificate, or already has an old CA
   */
  rotateCa(keep: number): Promise<CaStatus>;
  /**
   * Sets for how many seconds from now on the old CA is kept; 0 removes it.
   * @throws Failure `not_allowed` if there is none
   */
  setOldCaLifetime(keep: number): Promise<CaStatus>;
  /**
   * @throws Failure `scope_invalid`, `portal_unknown`, `appliance_exists`, `connection_unknown`, `connection_exists`,
   * `connection_mismatch`, `not_allowed`
   */
  addAppliance(name: string, choice: ConnectionChoice): Promise<IssuedCredentials>;
  /**
   * Lets an appliance use other connections. A connection of its own that has a grant is kept.
   * @param connections their names, at least one
   * @throws Failure `connection_unknown`, `connection_mismatch`, `appliance_declared`
   */
  moveAppliance(name: string, connections: readonly string[]): Promise<ApplianceStatus>;
  /**
   * Changes the title of an appliance, and that of its own connection; the name and everything else stays.
   * @throws Failure `appliance_exists`, `connection_exists`, `appliance_declared`, `not_allowed`
   */
  renameAppliance(name: string, title: string): Promise<ApplianceStatus>;
  /**
   * Removes an appliance, and its connection if that was its own.
   * @returns as `unpair`
   */
  removeAppliance(name: string): Promise<boolean | null>;
  /**
   * @param replaceKeys whether a secret may replace an appliance's own keys
   * @throws Failure `appliance_has_keys` if it has keys and `replaceKeys` is false, `appliance_declared`
   */
  rotateSecret(name: string, replaceKeys: boolean): Promise<IssuedCredentials>;
  /** Whether an appliance got another secret since the hub was started, and has not asked with it. */
  hasUnusedSecret(name: string): boolean;
  /**
   * Approves an appliance that registered itself.
   * @param code its comparison code, because another appliance may have got the name since; null if the installer gave
   * none
   * @param connection the name of the connection that it is to use; null for one of its own
   * @param portal that of its own connection, null or left out for the default one; beside `connection` it must be that one's
   * @throws Failure `not_allowed` if it does not wait for approval, or has another code; `connection_unknown`,
   * `connection_mismatch`, `portal_unknown`
   */
  approveAppliance(
    name: string,
    code: string | null,
    connection: string | null,
    portal?: string | null,
  ): Promise<ApplianceStatus>;
  /**
   * Makes an initial access token.
   * @throws Failure `name_invalid`, `scope_invalid`, `portal_unknown`, `appliance_exists`, `not_allowed`
   */
  invite(request: InviteRequest): Promise<IssuedInvite>;
  /** Opens registration for all appliances for so many seconds; 0 closes it. @throws Failure `not_allowed`, `portal_unknown` */
  openRegistration(seconds: number): Promise<RegistrationEndpoint>;
  /**
   * Creates a new store key, and seals everything with it.
   * @throws Failure `not_allowed` if that is not possible, with advice; `hub_stopping`, `store_unreadable`
   */
  rotateStoreKey(): Promise<StoreKeyRotationResult>;
  /** Replaces the snapshot of the store. @throws Failure `store_unreadable` if something in the store is damaged */
  takeSnapshot(): Promise<SnapshotReport>;
  /** @throws Failure `passphrase_weak`, `store_unreadable` */
  backUp(passphrase: string): Promise<Backup>;
  /**
   * Restores a whole backup or nothing. The hub must restart afterwards.
   * @param copy as returned by {@link backUp}
   * @returns the report, and `restart`, which the caller calls after the client has got the report
   * @throws Failure `copy_unusable`, `appliance_exists`, `passphrase_weak`
   */
  restore(copy: string, passphrase: string): Promise<{ readonly report: RestoreReport; restart(): void }>;
  /**
   * Reads and checks the configuration; changes nothing until the reload is started.
   * @throws Failure `config_invalid`, or `not_allowed` if another reload is under way or the hub can't be reloaded
   */
  reload(): Promise<PreparedReload>;
  /** @param id of a reload */
  reloadOutcome(id: string): ReloadOutcome;
}
