import type { Histories } from './history.ts';
import type { HookTrial, Notice } from './notice.ts';
import type { PairingDesk } from './pairing-desk.ts';
import type { PairingReport } from './pairing-report.ts';
import type { ProblemCode } from './problem.ts';
import type { Secret } from './secret.ts';
import type { SetupCodes } from './setup-access.ts';
import type { Restoration } from './state-copy.ts';

/** The hub in `status`; ports and address are what is really in use. */
export interface HubStatus {
  readonly id: string;
  readonly name: string;
  readonly version: string;
  /** Null while no address of the home network is there. */
  readonly address: string | null;
  readonly http_port: number;
  readonly https_port: number;
  /** Where metrics and health are told; left out where they are not. */
  readonly metrics_port?: number;
  readonly ca_fingerprint: string;
  /** Seconds since the daemon was started. */
  readonly uptime: number;
  /** Seconds for which any appliance may still introduce itself; left out while registration is closed. */
  readonly registration_open_for?: number;
  /** What is wrong with the hub as a whole; left out where nothing is. */
  readonly problems?: readonly HubProblem[];
}

/** Something that is wrong with the hub as a whole; `since` in RFC 3339 UTC. */
export interface HubProblem {
  readonly code: 'hub_id_taken' | 'not_announced' | 'store_recovered' | 'store_unwritable';
  readonly message: string;
  readonly since: string;
}

/** Where an appliance stands, in the words of DESIGN.md ("The command line"). */
export type ApplianceState = 'unpaired' | 'pairing' | 'active' | 'retrying' | 'needs_pairing';

/** An appliance in `status`; times in seconds, instants in RFC 3339 UTC. */
export interface ApplianceStatus {
  readonly name: string;
  readonly client_id: string;
  readonly state: ApplianceState;
  /** The grant's scope, or where there is no grant the one that will be asked for. */
  readonly scope: string | null;
  /** What is left of the token at hand; null where there is none or its age is unknown. */
  readonly expires_in: number | null;
  /** Until the next refresh; null where none is planned. */
  readonly refresh_in: number | null;
  readonly last_refresh: string | null;
  readonly problem: { readonly code: ProblemCode; readonly message: string; readonly since: string } | null;
  readonly portal: string;
  /** Only while a pairing waits for a person; of one that the appliance started itself, the hub's own `/pair` link. */
  readonly authorize_url?: string;
  /** The configuration declares it, which alone can take it away; left out of all others. */
  readonly declared?: true;
  /** It has introduced itself, and can do nothing until an installer approves it; left out where it need not wait. */
  readonly waiting_for_approval?: { readonly since: string; readonly software_id: string | null };
  /** Nobody can ask for its tokens: it is declared no longer, or `credentials_damaged`; left out where it has some. */
  readonly without_credentials?: true;
  /** Its credentials were damaged, and it has none for that reason; left out where it has not. */
  readonly credentials_damaged?: true;
  /** The scope that the configuration asks for by now, where the grant was asked for another: it is to be paired again. */
  readonly wanted_scope?: string | null;
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
export interface IssuedInvite extends RegistrationPlace {
  /** The initial access token (RFC 7591, 3). */
  readonly token: Secret;
  readonly name: string | null;
  readonly scope: string | null;
  /** Seconds. */
  readonly expiresIn: number;
}

/** Where appliances register, and the pin of the hub that is there. */
export interface RegistrationPlace {
  readonly registrationEndpoint: string;
  readonly caFingerprint: string;
}

/** The token at hand, as `latchkey token` prints it. */
interface TokenAtHand {
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
export interface RestoreReport extends Restoration {
  /** When the backup was made, RFC 3339 UTC. */
  readonly made: string;
  /** The hub's id from now on. */
  readonly hub_id: string;
}

/** A reload whose configuration was found right. */
export interface BegunReload {
  readonly id: string;
  /** To be called when whoever asked knows the id: the hub then goes, and another one comes in its place. */
  begin(): void;
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
export interface Administration extends SetupCodes, PairingDesk, Histories {
  /** `notices` are those that stand, what needs a person first. */
  status(): Promise<{ hub: HubStatus; appliances: ApplianceStatus[]; notices: Notice[] }>;
  /** Sends a notice that means nothing through each hook that is configured; none where there is none. */
  testNotices(): Promise<HookTrial[]>;
  /** The names of the configured portals, the default one first. */
  portals(): readonly string[];
  /** The CA's certificate, PEM, and its pin. */
  authority(): { readonly certificate: string; readonly fingerprint: string };
  /** @throws Failure `scope_invalid`, `portal_unknown`, `appliance_exists`, `not_allowed` */
  addAppliance(name: string, scope: string | null, portal: string | null): Promise<IssuedCredentials>;
  removeAppliance(name: string): Promise<void>;
  /**
   * @param replaceKeys whether a secret may take the place of an appliance's own keys
   * @throws Failure `appliance_has_keys` where it may not, `appliance_declared`
   */
  rotateSecret(name: string, replaceKeys: boolean): Promise<IssuedCredentials>;
  /** Lets an appliance that introduced itself do what appliances do. @throws Failure `not_allowed` where it waits for nothing */
  approveAppliance(name: string): Promise<ApplianceStatus>;
  /** Makes an initial access token. @throws Failure `name_invalid`, `scope_invalid`, `portal_unknown`, `appliance_exists`, `not_allowed` */
  invite(request: InviteRequest): Promise<IssuedInvite>;
  /** Lets any appliance introduce itself for so many seconds; 0 ends that. @throws Failure `not_allowed` */
  openRegistration(seconds: number): Promise<RegistrationPlace>;
  /** Starts a pairing. @returns its id, to follow it by. @throws Failure `not_allowed` where too many are open */
  pair(name: string): Promise<string>;
  /**
   * Follows a pairing: how it stands now, and then every change, until it has ended or the signal is aborted.
   * @throws Failure `pairing_unknown`
   */
  followPairing(id: string, signal: AbortSignal): AsyncIterable<PairingReport>;
  unpair(name: string): Promise<void>;
  /** @throws Failure `token_unavailable` */
  token(name: string): Promise<TokenAtHand>;
  /** Refreshes now, also when in doubt. @throws Failure `token_unavailable` where there is no grant */
  refresh(name: string): Promise<ApplianceStatus>;
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
  reload(): Promise<BegunReload>;
  /** @param id of a reload */
  reloadOutcome(id: string): ReloadOutcome;
}
