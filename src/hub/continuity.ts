import type { BrokerMemory } from '../broker/open-broker.ts';
import type { Instant } from '../core/clock.ts';
import type { AssertionReplayCache } from '../lan/oauth/assertion-replay-cache.ts';
import type { Tally } from '../metrics/tally.ts';

/**
 * What a daemon knows and its store does not, handed from one hub to the next when it takes another configuration over.
 * All else that is in memory is as it is after a restart: pairings, device flows and sessions are in the store, and what
 * limits a client (wrong secrets, polls that come too soon) starts anew, since only an installer can reload.
 */
export interface Continuity {
  /** When the daemon was started. */
  readonly started: Instant;
  readonly broker: BrokerMemory;
  /** Without them every assertion of the last half minute would have to be refused. */
  readonly usedAssertions: AssertionReplayCache;
  /** What was counted since the daemon was started. */
  readonly tally: Tally;
}
