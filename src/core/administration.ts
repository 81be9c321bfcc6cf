import type { RestoredGrants } from './backup-state.ts';
import type { Condition } from './health/condition.ts';
import type { PairingFailureReason } from './pairings/pairing.ts';
import type { PairingAdministration, PairingStatus } from './pairings/pairing-administration.ts';
import type { CredentialLocation } from './portal.ts';
import type { HistoryAdministration } from './reports/history.ts';
import type { HookTestResult, HUB_PROBLEM_CODES, Notice } from './reports/notice.ts';
import type { ProblemCode } from './reports/problem.ts';
import type { Secret } from './secret.ts';
import type { SetupCodeAdministration } from './setup-access.ts';

/** The hub in `status`; ports and address are what is really in use. */
export interface HubStatus {
  readonly id: string;
  readonly name: string;
  readonly version: string;
  /** Null while no address of the home network is there. */
  readonly address: string | null;
  readonly httpPort: number;
  readonly httpsPort: number;
  /** Where metrics and health are told; left out where they are not. */
  readonly metricsPort?: number;
  readonly caFingerprint: string;
  /**
   * The CA before the present one: appliances that trust no other are served until then (RFC 3339 UTC; null while the clock
   * is not confirmed). Left out where there is none.
   */
  readonly caRotation?: { readonly oldFingerprint: string; readonly until: string | null };
  /** Seconds since the daemon was started. */
  readonly uptime: number;
  /** The file that it has its configuration from, which may be missing. */
  readonly configFile: string;
  /** Its portal is an emulator in the same process, and nothing outlives it; left out of all other hubs. */
  readonly testMode?: true;
  /** Seconds for which any appliance may still introduce itself; left out while registration is closed. */
  readonly registrationOpenFor?: number;
  /**
   * How many appliances have registered since registration was last opened; left out where none has, and when it is closed
   * and none waits for approval any more.
   */
  readonly registrationAsked?: number;
  /** What is wrong with the hub as a whole; left out where nothing is. */
  readonly problems?: readonly HubProblem[];
}

/** How all stands. */
export interface StatusReport {
  readonly hub: HubStatus;
  readonly appliances: readonly ApplianceStatus[];
  /** What is not as it should be, the gravest first; every surface shows these. */
  readonly conditions: readonly Condition[];
  /** Those of them that are worth a notice by now. */
  readonly notices: readonly Notice[];
}

/** The CA that appliances trust. */
export interface CaStatus {
  /** PEM. */
  readonly certificate: string;
  /** Its pin: base64url SHA-256 of its public key. */
  readonly fingerprint: string;
  /** The one before it, while appliances that trust no other are served; `until` as in {@link HubStatus}. */
  readonly old?: { readonly certificate: string; readonly fingerprint: string; readonly until: string | null };
}

/** Something that is wrong with the hub as a whole; `since` in RFC 3339 UTC. */
export interface HubProblem {
  readonly code: (typeof HUB_PROBLEM_CODES)[number];
  readonly message: string;
  readonly since: string;
}

/** Where an appliance stands, as `status` names it. */
export type ApplianceState = (typeof APPLIANCE_STATES)[number];

/** All of them. */
export const APPLIANCE_STATES = ['unpaired', 'pairing', 'active', 'retrying', 'needs_pairing'] as const;

/** An appliance in `status`; times in seconds, instants in RFC 3339 UTC. */
export interface ApplianceStatus {
  readonly name: string;
  readonly clientId: string;
  readonly state: ApplianceState;
  /** The grant's scope, or where there is no grant the one that will be asked for. */
  readonly scope: string | null;
  /** What is left of the token at hand; null where there is none or its age is unknown. */
  readonly expiresIn: number | null;
  /** Until the next refresh; null where none is planned. */
  readonly refreshIn: number | null;
  /** When the token at hand was given, by the hub's clock as it is now, right or wrong; null where nobody can know. */
  readonly lastRefresh: string | null;
  readonly problem: { readonly code: ProblemCode; readonly message: string; readonly since: string } | null;
  readonly portal: string;
  /** With which account of the portal it is connected, as its tokens say, unverified; null if they don't, or there are none. */
  readonly account: string | null;
  /** Only while a pairing waits for a person; of one that the appliance started itself, the hub's own `/pair` link. */
  readonly authorizeUrl?: string;
  /** The configuration declares it, which alone can take it away; left out of all others. */
  readonly declared?: true;
  /** It has introduced itself, and can do nothing until an installer approves it; left out where it need not wait. */
  readonly waitingForApproval?: PendingApproval;
  /** Nobody can ask for its tokens: it is declared no longer, or `credentialsDamaged`; left out where it has some. */
  readonly withoutCredentials?: true;
  /** Its credentials were damaged, and it has none for that reason; left out where it has not. */
  readonly credentialsDamaged?: true;
  /** Why the last pairing failed, while it is not paired: for a day, until another begins, or as `recentPairingFailure` has it. */
  readonly pairingFailed?: FailedPairing;
  /** Why no grant is at work, where the portal has not ended it; left out where it has, or where the appliance was never paired. */
  readonly grantMissing?: MissingGrantReason;
  /** Its `problem` is that the portal did not take the hub's credentials before, and they are tried within seconds; left out otherwise. */
  readonly credentialsUntried?: true;
  /** Where the hub's credentials at its portal are corrected; left out where nothing of them is told. */
  readonly credentialLocation?: CredentialLocation;
  /** The scope that the configuration asks for by now, where the grant was asked for another: it is to be paired again. */
  readonly wantedScope?: string | null;
}

/** Why an appliance that was paired has no grant at work: it was paired with what the configuration has no longer, or the store was damaged. */
type MissingGrantReason = 'portal_changed' | 'grant_damaged';

/** A pairing that has failed: `message` says why and what to do next, in English; `at` in RFC 3339 UTC. */
interface FailedPairing {
  readonly reason: PairingFailureReason;
  readonly message: string;
  readonly at: string;
}

/** An appliance that registered itself and waits for an installer; `since` in RFC 3339 UTC. */
export interface PendingApproval {
  readonly since: string;
  readonly softwareId: string | null;
  /** What its registration response told it too: the installer compares the two. */
  readonly comparisonCode: string;
  /** The IP address that it registered from; null where that is not known. */
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

/** What an invite says of the appliance that will come with it. */
export interface InviteRequest {
  /** What the appliance is to be called; null where it may choose. */
  readonly name: string | null;
  readonly scope: string | null;
  readonly portal: string | null;
  /** Seconds that it is good for. */
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

/** Where appliances register, and the pin of the hub that is there. */
export interface RegistrationEndpoint {
  readonly registrationEndpoint: string;
  readonly caFingerprint: string;
}

/** The token at hand, as `latchkey token` prints it. */
interface CurrentToken {
  readonly accessToken: Secret;
  readonly expiresIn: number;
  readonly scope: string | null;
}

/** A backup of the hub's state. */
export interface Backup {
  /** Encrypted with the passphrase: ASCII, to be kept in a file. */
  readonly copy: string;
  /** RFC 3339 UTC. */
  readonly made: string;
  readonly appliances: number;
  readonly grants: number;
}

/** What came of restoring a backup. */
export interface RestoreReport extends RestoredGrants {
  /** When the backup was made, RFC 3339 UTC. */
  readonly made: string;
  /** The hub's id from now on. */
  readonly hubId: string;
}

/** What came of another store key. */
export interface StoreKeyRotationResult {
  /** Files that only the key before opens: stores of before, kept for people. */
  readonly leftovers: readonly string[];
  /** Why there is no daily copy; null where there is one. */
  readonly copyProblem: string | null;
  /** Whether the key is a systemd credential, whose owner has to put it in the place of the one before. */
  readonly isCredential: boolean;
}

/** A reload whose configuration was found right. */
export interface PreparedReload {
  readonly id: string;
  /** To be called when whoever asked knows the id: the hub then goes, and another one comes in its place. */
  start(): void;
}

/** How a reload stands; `unknown` where the daemon was started anew since. */
export type ReloadOutcome =
  | { readonly state: 'under_way' | 'done' | 'unknown' }
  /** The hub runs with the configuration of before. */
  | { readonly state: 'failed'; readonly message: string };

/**
 * What a person at the hub may ask of it. Everything rejects with a Failure: `appliance_unknown`, `name_invalid` and
 * `store_unwritable` where they apply, and what is named at each.
 */
export interface Administration extends SetupCodeAdministration, PairingAdministration, HistoryAdministration {
  status(): Promise<StatusReport>;
  /** Sends a notice that means nothing through each hook that is configured; none where there is none. */
  testNotices(): Promise<HookTestResult[]>;
  /** The names of the configured portals, the default one first. */
  portals(): readonly string[];
  caStatus(): CaStatus;
  /**
   * Makes another CA.
   * @param keep for how many seconds appliances that trust no other than the old one are served
   * @throws Failure `not_allowed` where the hub shows the user's own certificate, or has an old CA already
   */
  rotateCa(keep: number): Promise<CaStatus>;
  /** Says anew for how many seconds, from now on, the old CA is kept; 0 ends it. @throws Failure `not_allowed` where there is none */
  setOldCaLifetime(keep: number): Promise<CaStatus>;
  /** @throws Failure `scope_invalid`, `portal_unknown`, `appliance_exists`, `not_allowed` */
  addAppliance(name: string, scope: string | null, portal: string | null): Promise<IssuedCredentials>;
  removeAppliance(name: string): Promise<void>;
  /**
   * @param replaceKeys whether a secret may take the place of an appliance's own keys
   * @throws Failure `appliance_has_keys` where it may not, `appliance_declared`
   */
  rotateSecret(name: string, replaceKeys: boolean): Promise<IssuedCredentials>;
  /**
   * Lets an appliance that introduced itself do what appliances do.
   * @param code its comparison code, where the installer gave one: another appliance may have the name by now
   * @throws Failure `not_allowed` where it waits for nothing, or has another code
   */
  approveAppliance(name: string, code: string | null): Promise<ApplianceStatus>;
  /** Makes an initial access token. @throws Failure `name_invalid`, `scope_invalid`, `portal_unknown`, `appliance_exists`, `not_allowed` */
  invite(request: InviteRequest): Promise<IssuedInvite>;
  /** Lets any appliance introduce itself for so many seconds; 0 ends that. @throws Failure `not_allowed` */
  openRegistration(seconds: number): Promise<RegistrationEndpoint>;
  /** Starts a pairing. @returns its id, to follow it by. @throws Failure `not_allowed` where too many are open */
  pair(name: string): Promise<string>;
  /**
   * Follows a pairing: how it stands now, and then every change, until it has ended or the signal is aborted.
   * @throws Failure `pairing_unknown`
   */
  followPairing(id: string, signal: AbortSignal): AsyncIterable<PairingStatus>;
  unpair(name: string): Promise<void>;
  /** @throws Failure `token_unavailable` */
  token(name: string): Promise<CurrentToken>;
  /** Refreshes now, also when in doubt. @throws Failure `token_unavailable` where there is no grant */
  refresh(name: string): Promise<ApplianceStatus>;
  /**
   * Makes another store key, and seals everything anew.
   * @throws Failure `not_allowed` where it can't be done, with what to do; `hub_stopping`, `store_unreadable`
   */
  rotateStoreKey(): Promise<StoreKeyRotationResult>;
  /** @throws Failure `passphrase_weak`, `store_unreadable` */
  backUp(passphrase: string): Promise<Backup>;
  /**
   * Restores a backup, all of it or nothing; the hub has to be started again then.
   * @param copy what {@link backUp} gave
   * @returns `restart` to be called when whoever asked has the report
   * @throws Failure `copy_unusable`, `appliance_exists`, `passphrase_weak`
   */
  restore(copy: string, passphrase: string): Promise<{ readonly report: RestoreReport; restart(): void }>;
  /**
   * Reads the configuration anew and checks it; nothing has changed until the reload is begun.
   * @throws Failure `config_invalid`, or `not_allowed` where another one is under way or the hub can't be reloaded
   */
  reload(): Promise<PreparedReload>;
  /** @param id of a reload */
  reloadOutcome(id: string): ReloadOutcome;
}
