import type { RestoredGrants } from './backup-contents.ts';
import type { Condition } from './health/condition.ts';
import type { PairingFailureReason } from './pairings/pairing.ts';
import type { PairingAdministration, PairingStatus } from './pairings/pairing-administration.ts';
import type { CredentialLocation } from './portal.ts';
import type { HistoryAdministration } from './reports/history.ts';
import type { HookTestResult, HUB_PROBLEM_CODES, Notice } from './reports/notice.ts';
import type { ProblemCode } from './reports/problem.ts';
import type { Secret } from './secret.ts';
import type { SetupCodeAdministration } from './setup-access.ts';

/** The hub in `status`; ports and address are the ones in use. */
export interface HubStatus {
  readonly id: string;
  readonly name: string;
  readonly version: string;
  /** Null while the hub has no address in the home network. */
  readonly address: string | null;
  readonly httpPort: number;
  readonly httpsPort: number;
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

/** The state of the hub and its appliances. */
export interface StatusReport {
  readonly hub: HubStatus;
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
  readonly code: (typeof HUB_PROBLEM_CODES)[number];
  readonly message: string;
  readonly since: string;
}

/** The state of an appliance, as in `status`. */
export type ApplianceState = (typeof APPLIANCE_STATES)[number];

/** All states. */
export const APPLIANCE_STATES = ['unpaired', 'pairing', 'active', 'retrying', 'needs_pairing'] as const;

/** An appliance in `status`; times in seconds, instants in RFC 3339 UTC. */
export interface ApplianceStatus {
  readonly name: string;
  readonly clientId: string;
  readonly state: ApplianceState;
  /** The grant's scope; if there is no grant, the scope that the hub will request. */
  readonly scope: string | null;
  /** Remaining lifetime of the current access token; null if there is none or its age is unknown. */
  readonly expiresIn: number | null;
  /** Time until the next refresh; null if none is planned. */
  readonly refreshIn: number | null;
  /**
   * When the current access token was obtained, by the hub's current clock, right or wrong; null if that is unknown.
   */
  readonly lastRefresh: string | null;
  readonly problem: { readonly code: ProblemCode; readonly message: string; readonly since: string } | null;
  readonly portal: string;
  /**
   * The portal account with which it is connected, as reported in its tokens, unverified; null if they do not report
   * one, or if there are no tokens.
   */
  readonly account: string | null;
  /** The pairing link; for a device flow, the hub's own `/pair` link. Left out unless a pairing waits for a person. */
  readonly authorizeUrl?: string;
  /** The configuration declares it, and only the configuration can remove it; left out otherwise. */
  readonly declared?: true;
  /** It has registered itself, and can do nothing until an installer approves it; left out if it does not wait. */
  readonly waitingForApproval?: PendingApproval;
  /**
   * Nobody can request its tokens: it is no longer declared, or `credentialsDamaged`; left out if it has credentials.
   */
  readonly withoutCredentials?: true;
  /** It has no credentials, because its entry in the store was damaged; left out otherwise. */
  readonly credentialsDamaged?: true;
  /**
   * Why the last pairing failed. Left out if the appliance is paired, a day after the failure, once another pairing
   * begins, or, if the configuration was the cause, after the next start or reload.
   */
  readonly pairingFailed?: FailedPairing;
  /**
   * Why the appliance has no usable grant, although the portal has not ended it. Left out if the portal has, or if the
   * appliance was never paired.
   */
  readonly grantMissing?: MissingGrantReason;
  /**
   * Its `problem` is that the portal did not accept the hub's credentials before the last start or reload, and the hub
   * tries them again within seconds; left out otherwise.
   */
  readonly credentialsUntried?: true;
  /**
   * Where a person corrects the hub's credentials for its portal; left out if neither `problem` nor `pairingFailed` can
   * mention them.
   */
  readonly credentialLocation?: CredentialLocation;
  /**
   * The configured scope, if it differs from the scope that was requested for the grant, so that a new pairing is
   * needed.
   */
  readonly wantedScope?: string | null;
}

/**
 * Why a paired appliance has no usable grant: the configuration no longer has the portal and client_id of the pairing,
 * or the store was damaged.
 */
type MissingGrantReason = 'portal_changed' | 'grant_damaged';

/** A failed pairing: `message` says why it failed and what to do next, in English; `at` in RFC 3339 UTC. */
interface FailedPairing {
  readonly reason: PairingFailureReason;
  readonly message: string;
  readonly at: string;
}

/** An appliance that registered itself and waits for an installer; `since` in RFC 3339 UTC. */
export interface PendingApproval {
  readonly since: string;
  readonly softwareId: string | null;
  /** The code that its registration response contains too: the installer compares the two. */
  readonly comparisonCode: string;
  /** The IP address that it registered from; null if it is unknown. */
  readonly address: string | null;
}

/** An appliance's credentials, shown once. */
export interface IssuedCredentials {
  readonly name: string;
  readonly clientId: string;
  readonly clientSecret: Secret;
  readonly tokenEndpoint: string;
  readonly caFingerprint: string;
}

/** A request for an invite. */
export interface InviteRequest {
  /** The name that the appliance gets; null if it may choose. */
  readonly name: string | null;
  readonly scope: string | null;
  readonly portal: string | null;
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

/** The current access token, as `latchkey token` prints it. */
interface CurrentToken {
  readonly accessToken: Secret;
  readonly expiresIn: number;
  readonly scope: string | null;
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

/** A reload whose configuration is valid. */
export interface PreparedReload {
  readonly id: string;
  /** Replaces this hub by one with the new configuration. Call it after the client has got the id. */
  start(): void;
}

/** The state of a reload; `unknown` if the daemon was restarted since. */
export type ReloadOutcome =
  | { readonly state: 'under_way' | 'done' | 'unknown' }
  /** The hub runs with the previous configuration. */
  | { readonly state: 'failed'; readonly message: string };

/**
 * The operations for people at the hub. Every method may reject with a Failure `appliance_unknown`, `name_invalid` or
 * `store_unwritable`, and with the codes that its docstring names.
 */
export interface Administration extends SetupCodeAdministration, PairingAdministration, HistoryAdministration {
  status(): Promise<StatusReport>;
  /** Sends a test notice through each configured hook. @returns one result per hook */
  testNotices(): Promise<HookTestResult[]>;
  /** The names of the configured portals, the default one first. */
  portals(): readonly string[];
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
  /** @throws Failure `scope_invalid`, `portal_unknown`, `appliance_exists`, `not_allowed` */
  addAppliance(name: string, scope: string | null, portal: string | null): Promise<IssuedCredentials>;
  removeAppliance(name: string): Promise<void>;
  /**
   * @param replaceKeys whether a secret may replace an appliance's own keys
   * @throws Failure `appliance_has_keys` if it has keys and `replaceKeys` is false, `appliance_declared`
   */
  rotateSecret(name: string, replaceKeys: boolean): Promise<IssuedCredentials>;
  /**
   * Approves an appliance that registered itself.
   * @param code its comparison code, because another appliance may have got the name since; null if the installer gave
   * none
   * @throws Failure `not_allowed` if it does not wait for approval, or has another code
   */
  approveAppliance(name: string, code: string | null): Promise<ApplianceStatus>;
  /**
   * Makes an initial access token.
   * @throws Failure `name_invalid`, `scope_invalid`, `portal_unknown`, `appliance_exists`, `not_allowed`
   */
  invite(request: InviteRequest): Promise<IssuedInvite>;
  /** Opens registration for all appliances for so many seconds; 0 closes it. @throws Failure `not_allowed` */
  openRegistration(seconds: number): Promise<RegistrationEndpoint>;
  /**
   * Starts a pairing.
   * @returns its id, for {@link followPairing}.
   * @throws Failure `not_allowed` if too many are open
   */
  pair(name: string): Promise<string>;
  /**
   * Follows a pairing: yields its status now and after every change, until it has ended or the signal is aborted.
   * @throws Failure `pairing_unknown`
   */
  followPairing(id: string, signal: AbortSignal): AsyncIterable<PairingStatus>;
  unpair(name: string): Promise<void>;
  /** @throws Failure `token_unavailable` */
  token(name: string): Promise<CurrentToken>;
  /** Forces a refresh, even of a grant in doubt. @throws Failure `token_unavailable` if there is no grant */
  refresh(name: string): Promise<ApplianceStatus>;
  /**
   * Creates a new store key, and seals everything with it.
   * @throws Failure `not_allowed` if that is not possible, with advice; `hub_stopping`, `store_unreadable`
   */
  rotateStoreKey(): Promise<StoreKeyRotationResult>;
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
