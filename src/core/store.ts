import type { Appliance } from './appliances/appliance.ts';
import type { Invite } from './appliances/registration.ts';
import type { Session } from './appliances/session.ts';
import type { Instant } from './clock.ts';
import type { Grant } from './grants/grant.ts';
import type { Pairing } from './pairings/pairing.ts';

/** A refresh that was written ahead, so that the hub knows after a crash that it may have been sent. */
export interface RefreshAttempt {
  /** The SHA-256 of the refresh token, base64url: the attempt is about this refresh token only. */
  readonly token: string;
  readonly at: Instant;
}

/** A stored grant with its open refresh attempt; null if there is none. */
export interface StoredGrant {
  readonly grant: Grant;
  readonly attempt: RefreshAttempt | null;
}

/**
 * The store of everything that must survive a power cut. A write that resolves is on disk. Another process may use the
 * same store, so every write of a grant names the generation that it replaces. If the store has another generation, the
 * write changes nothing and resolves with false.
 *
 * Every method rejects with a Failure `store_unwritable` or `store_unreadable`.
 */
export interface Store {
  /** A setting of the hub, such as its id; null if it is not set. Settings are sealed. */
  setting(name: string): Promise<string | null>;
  saveSetting(name: string, value: string): Promise<void>;
  /** Saves several settings in one transaction. */
  saveSettings(values: Readonly<Record<string, string>>): Promise<void>;

  appliances(): Promise<Appliance[]>;
  /**
   * @param invite the hash of the invite that the appliance used, which is removed in the same transaction
   * @returns false if the name or the client_id is taken, or the invite no longer exists
   */
  addAppliance(appliance: Appliance, invite?: string): Promise<boolean>;
  /** Replaces the record of an appliance. @returns false if it no longer exists, or its name or client_id is taken */
  updateAppliance(appliance: Appliance): Promise<boolean>;
  /** Removes an appliance with its grant, its pairings and its sessions. */
  removeAppliance(appliance: string): Promise<void>;

  grants(): Promise<StoredGrant[]>;
  grant(appliance: string): Promise<StoredGrant | null>;
  /** The generation of an appliance's last grant, even if that was forgotten; 0 if there never was one. */
  generation(appliance: string): Promise<number>;
  /** Writes a refresh ahead, together with the grant's doubt, which may not be on disk yet. */
  beginAttempt(grant: Pick<Grant, 'appliance' | 'generation' | 'doubt'>, attempt: RefreshAttempt): Promise<boolean>;
  /** Ends the open refresh attempt without new tokens, and saves what followed from it. */
  endAttempt(grant: Pick<Grant, 'appliance' | 'generation' | 'doubt' | 'refused' | 'misconfigured'>): Promise<boolean>;
  /** Marks the access token of this generation as rejected, so that the hub never issues it again. */
  markTokenRejected(appliance: string, generation: number, at: Instant): Promise<boolean>;
  /** Replaces the grant with generation `grant.generation - 1`. */
  replaceGrant(grant: Grant): Promise<boolean>;
  forgetGrant(appliance: string, generation: number): Promise<boolean>;

  /** All stored pairings: the open ones, and the last few ended ones of each appliance. */
  pairings(): Promise<Pairing[]>;
  savePairing(pairing: Pairing): Promise<void>;
  /** Ends a pairing and saves its grant in one transaction. @returns false if the store has another generation */
  completePairing(pairing: Pairing, grant: Grant): Promise<boolean>;

  sessions(): Promise<Session[]>;
  /**
   * Saves a session, and replaces one of the same device flow; only the newest few of each appliance are kept.
   * @returns false if its appliance no longer exists
   */
  saveSession(session: Session): Promise<boolean>;
  /** @param hash of its refresh token. @returns false if there is no such session */
  endSession(hash: string): Promise<boolean>;

  invites(): Promise<Invite[]>;
  saveInvite(invite: Invite): Promise<void>;
  /** @param hash of its token */
  removeInvite(hash: string): Promise<void>;
}
