import type { Instant } from '../clock.ts';
import type { PairingFailureReason } from '../pairings/pairing.ts';
import type { ProblemCode } from './problem.ts';

/** What happens to an appliance, told to whoever keeps books of it: its history, the metrics. */
export type ApplianceEvent = {
  /** The appliance's id. */
  readonly appliance: string;
  readonly at: Instant;
} & (
  | { readonly kind: 'paired'; readonly scope: string | null }
  /** One that a person could have opened, or has; a device flow that nobody opened just lapses. */
  | { readonly kind: 'pairing_failed'; readonly reason: PairingFailureReason }
  /** A person had the grant forgotten. */
  | { readonly kind: 'unpaired' }
  /** New tokens are written down; `took` in ms from sending the request to that. */
  | { readonly kind: 'refreshed'; readonly took: number }
  /**
   * An attempt was not begun, or brought no new tokens, or some that can't be written (`store_unwritable`) and are served from
   * memory. `took` in ms from sending; null where nothing was sent, or a power cut or the hub's end cut it short.
   */
  | { readonly kind: 'refresh_failed'; readonly problem: ProblemCode; readonly took: number | null }
  /** The cloud refused the access token, its appliance says. */
  | { readonly kind: 'token_refused' }
);

/** Takes an event; never throws, and never waits. */
export type EmitEvent = (event: ApplianceEvent) => void;
