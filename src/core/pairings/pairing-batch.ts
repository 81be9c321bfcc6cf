import type { ShownLink } from '../portals/login-link.ts';
import type { Secret } from '../secret.ts';
import type { PairingFailureReason } from './pairing.ts';

/** Why an appliance is not connected at the end of a batch; `not_begun`: its pairing was not started. */
export type SkipReason = PairingFailureReason | 'waiting_for_approval' | 'not_begun';

/** An appliance that a batch has not connected. */
export interface SkippedConnection {
  readonly name: string;
  /** The id of its pairing in this batch; null if there was none. */
  readonly pairing: string | null;
  readonly reason: SkipReason;
}

/** The portal account with which an appliance of a batch was connected. */
export interface BatchAccount {
  readonly connection: string;
  readonly account: string;
}

/** The pairings of all appliances, one after the other, so that a person logs in once and then only confirms. */
export interface PairingBatch {
  readonly id: string;
  /** What people call the connections of the hub, by their names. */
  readonly titles: Readonly<Record<string, string>>;
  /** The open pairing; null if there is none. */
  readonly current: { readonly pairing: string; readonly connection: string } | null;
  /** The name of the appliance that comes next; null if none is left. */
  readonly next: string | null;
  /** The names of all connected appliances, including those that were connected before. */
  readonly connected: readonly string[];
  /** How many of them this batch has connected. */
  readonly connectedNow: number;
  readonly skipped: readonly SkippedConnection[];
  /**
   * The accounts of the appliances that this batch has connected, if one portal reported several: a family may have two
   * accounts, or somebody else logged in. Empty if all have the same account.
   */
  readonly differentAccounts: readonly BatchAccount[];
}

/** How many logins of a batch are done, and of how many: without those that were connected before. */
export function countLogins({ connectedNow: done, skipped, current }: PairingBatch): {
  readonly done: number;
  readonly all: number;
} {
  return { done, all: done + skipped.length + (current === null ? 0 : 1) };
}

/** A batch, as shown to a browser that the portal has redirected to the hub. */
export interface BatchForBrowser {
  readonly id: string;
  /**
   * Null for a browser that has not brought an accepted code of this batch: it must not learn about other appliances.
   */
  readonly batch: PairingBatch | null;
  /**
   * With this token the browser proves from now on that it has brought such a code; null if it already has a
   * valid token, or has brought no such code.
   */
  readonly batchToken: Secret | null;
}

/** The result of a request to continue with the next connection of a batch. */
export type BatchLoginLinkResult =
  /** `pairing`: the id of the next appliance's pairing. */
  | ({ readonly kind: 'link'; readonly pairing: string } & ShownLink)
  /** The portal is unreachable at the moment; the pairing of this connection, by its title, waits for it. */
  | { readonly kind: 'unreachable'; readonly connection: string }
  /** This browser has not brought an accepted code of the batch: an installer can continue on the hub's page. */
  | { readonly kind: 'not_proved'; readonly batch: string }
  /** No appliance is left to pair, or the batch is too old to continue with this link. */
  | { readonly kind: 'over' };
