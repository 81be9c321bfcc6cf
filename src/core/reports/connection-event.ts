import type { Instant } from '../clock.ts';
import type { PairingFailureReason } from '../pairings/pairing.ts';
import type { ProblemCode } from './problem.ts';

/**
 * What happens to a connection. Its history and the metrics record these events. `user` is the name of the person who
 * started the pairing or removed the grant, as a reverse proxy reports it; left out if it is unknown.
 */
export type ConnectionEvent = {
  /** The connection's id. */
  readonly connection: string;
  readonly at: Instant;
} & (
  | { readonly kind: 'paired'; readonly scope: string | null; readonly user?: string }
  /** Not emitted for a device flow that nobody opened, if it expired, was replaced or was cancelled. */
  | { readonly kind: 'pairing_failed'; readonly reason: PairingFailureReason }
  /** A person removed the grant. */
  | { readonly kind: 'unpaired'; readonly user?: string }
  /** New tokens are stored; `took` is the time in ms from sending the request until then. */
  | { readonly kind: 'refreshed'; readonly took: number }
  /**
   * An attempt could not begin, brought no new tokens, or brought tokens that the store can't save (`store_unwritable`)
   * and that the hub serves from memory. `took` in ms since sending; null if nothing was sent, or if a power cut or a
   * stop interrupted it.
   */
  | { readonly kind: 'refresh_failed'; readonly problem: ProblemCode; readonly took: number | null }
  /** An appliance reported that the cloud refused its access token. */
  | { readonly kind: 'token_refused' }
);

/** Handles an event; never throws, and never blocks. */
export type EmitEvent = (event: ConnectionEvent) => void;
