import type { FailureReason } from './pairing.ts';

/** Why an appliance is not connected at the end of a round; `not_begun`: its turn has not come. */
export type LeftOutReason = FailureReason | 'waiting_for_approval' | 'not_begun';

/** An appliance that a round has not connected. */
export interface LeftOut {
  readonly name: string;
  /** The round's pairing of it; null where there was none. */
  readonly pairing: string | null;
  readonly reason: LeftOutReason;
}

/** All appliances paired one after the other, so that a person logs in once and then only says yes. */
export interface Round {
  readonly id: string;
  /** The one that is under way. */
  readonly current: { readonly pairing: string; readonly appliance: string } | null;
  /** The name of the appliance whose turn comes after that; null where none is left. */
  readonly next: string | null;
  /** The names of all appliances that are connected, also of those that were before. */
  readonly connected: readonly string[];
  readonly leftOut: readonly LeftOut[];
}

/** What became of a person's wish to go on to the next appliance of a round. */
export type RoundLink =
  | { readonly kind: 'link'; readonly authorizeUrl: string }
  /** The portal can't be reached just now; the pairing of this appliance waits for it. */
  | { readonly kind: 'unreachable'; readonly appliance: string }
  /** Nothing is left to be paired, or the round is too old to be gone on with by this link. */
  | { readonly kind: 'over' };
