import type { Secret } from '../secret.ts';
import { PAIRING_FAILURE_REASONS } from './pairing.ts';

/** Why an appliance is not connected at the end of a round; `not_begun`: its turn has not come. */
export type SkipReason = (typeof SKIP_REASONS)[number];

/** All of them. */
export const SKIP_REASONS = [...PAIRING_FAILURE_REASONS, 'waiting_for_approval', 'not_begun'] as const;

/** An appliance that a round has not connected. */
export interface SkippedAppliance {
  readonly name: string;
  /** The round's pairing of it; null where there was none. */
  readonly pairing: string | null;
  readonly reason: SkipReason;
}

/** With which account of its portal an appliance of a round was connected. */
export interface BatchAccount {
  readonly appliance: string;
  readonly account: string;
}

/** All appliances paired one after the other, so that a person logs in once and then only says yes. */
export interface PairingBatch {
  readonly id: string;
  /** The one that is under way. */
  readonly current: { readonly pairing: string; readonly appliance: string } | null;
  /** The name of the appliance whose turn comes after that; null where none is left. */
  readonly next: string | null;
  /** The names of all appliances that are connected, also of those that were before. */
  readonly connected: readonly string[];
  readonly skipped: readonly SkippedAppliance[];
  /**
   * The accounts of the appliances that this round has connected, where one portal has told of several: a family may have two, or
   * somebody else has logged in. Empty where all have one.
   */
  readonly differentAccounts: readonly BatchAccount[];
}

/** A round, for a browser that has come back from the portal. */
export interface BatchForBrowser {
  readonly id: string;
  /** Null for a browser that has not brought a code of this round that was accepted: it learns nothing of other appliances. */
  readonly batch: PairingBatch | null;
  /** What the browser proves that with from now on; null if it can already, or has not brought such a code. */
  readonly batchToken: Secret | null;
}

/** What became of a person's wish to go on to the next appliance of a round. */
export type BatchLoginLinkResult =
  /** @property pairing the id of the next appliance's */
  | { readonly kind: 'link'; readonly pairing: string; readonly authorizeUrl: string }
  /** The portal can't be reached just now; the pairing of this appliance waits for it. */
  | { readonly kind: 'unreachable'; readonly appliance: string }
  /** This browser has not brought a code of the round that was accepted: the hub's page goes on, for an installer. */
  | { readonly kind: 'not_proved'; readonly batch: string }
  /** Nothing is left to be paired, or the round is too old to be gone on with by this link. */
  | { readonly kind: 'over' };
