import type { Appliance } from './appliances/appliance.ts';
import type { Invite } from './appliances/registration.ts';
import type { Session } from './appliances/session.ts';
import type { Instant } from './clock.ts';
import type { Grant } from './grants/grant.ts';
import type { Pairing } from './pairings/pairing.ts';

/** A refresh that was about to be sent: written ahead, so that a crash in the middle of it is known afterwards. */
export interface RefreshAttempt {
  /** The SHA-256 of the refresh token, base64url: of another token's fate the attempt says nothing. */
  readonly token: string;
  readonly at: Instant;
}

/** A grant as it is kept, with the refresh attempt that was written ahead and has no end yet. */
export interface StoredGrant {
  readonly grant: Grant;
  readonly attempt: RefreshAttempt | null;
}

/**
 * Where the hub keeps what must survive a power cut. A promise that is kept means: it is on disk. A hub may not be
 * alone with its store, so every write of a grant names the generation it replaces, and answers false, having changed
 * nothing, where it finds another.
 *
 * Every method rejects with a Failure `store_unwritable` or `store_unreadable`.
 */
export interface Store {
  /** A named value of the hub itself, such as its id; kept sealed. */
  setting(name: string): Promise<string | null>;
  saveSetting(name: string, value: string): Promise<void>;
  /** Saves several settings, all or none. */
  saveSettings(values: Readonly<Record<string, string>>): Promise<void>;

  appliances(): Promise<Appliance[]>;
  /**
   * @param invite the hash of the invite that it brought, which is used up with it: both or none
   * @returns false where the name or the client_id is taken, or the invite is gone
   */
  addAppliance(appliance: Appliance, invite?: string): Promise<boolean>;
  /** Puts what is known of an appliance in place of what was. @returns false where it is gone, or a name is taken */
  updateAppliance(appliance: Appliance): Promise<boolean>;
  /** Removes an appliance with its grant, its pairings and its sessions. */
  removeAppliance(appliance: string): Promise<void>;

  grants(): Promise<StoredGrant[]>;
  grant(appliance: string): Promise<StoredGrant | null>;
  /** The generation of an appliance's last grant, also of one that was forgotten; 0 where there never was one. */
  generation(appliance: string): Promise<number>;
  /** Writes down that a refresh is about to be sent, and what doubt there is already: that may not be on disk yet. */
  beginAttempt(grant: Pick<Grant, 'appliance' | 'generation' | 'doubt'>, attempt: RefreshAttempt): Promise<boolean>;
  /** Writes down that the refresh under way brought no new tokens, and what that means. */
  endAttempt(grant: Pick<Grant, 'appliance' | 'generation' | 'doubt' | 'refused' | 'misconfigured'>): Promise<boolean>;
  /** Writes down that the access token of this generation is not to be handed out any more. */
  markTokenRejected(appliance: string, generation: number, at: Instant): Promise<boolean>;
  /** Puts a grant in the place of the one with generation `grant.generation - 1`. */
  replaceGrant(grant: Grant): Promise<boolean>;
  forgetGrant(appliance: string, generation: number): Promise<boolean>;

  /** Every pairing that is kept: the open ones, and of each appliance the last few that ended. */
  pairings(): Promise<Pairing[]>;
  savePairing(pairing: Pairing): Promise<void>;
  /** Ends a pairing and puts its grant in place, both or none. @returns false as `replaceGrant` */
  completePairing(pairing: Pairing, grant: Grant): Promise<boolean>;

  sessions(): Promise<Session[]>;
  /**
   * Keeps a session, in place of the one of the same device flow; of each appliance only the newest few are kept.
   * @returns false where its appliance is gone
   */
  saveSession(session: Session): Promise<boolean>;
  /** @param hash of its refresh token. @returns false where there is none */
  endSession(hash: string): Promise<boolean>;

  invites(): Promise<Invite[]>;
  saveInvite(invite: Invite): Promise<void>;
  /** @param hash of its token */
  removeInvite(hash: string): Promise<void>;
}
