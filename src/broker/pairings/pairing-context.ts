import type { Store } from '../../core/store.ts';
import type { Grants } from '../grants/grants.ts';
import type { ConnectedPortal, Environment, PairingTimes } from '../ports.ts';
import type { ReferenceClock } from '../time/reference-clock.ts';

/**
 * How long a person waits at most for a code exchange that is under way, in ms: that of a pairing which another one
 * replaces, or that of another hub.
 */
export const MAX_EXCHANGE_WAIT = 8000;

/** What all pairings share. */
export interface PairingContext {
  readonly environment: Environment;
  readonly store: Store;
  /** See {@link NewsLook.take}. */
  readonly lookForNews: () => Promise<boolean>;
  readonly grants: Grants;
  readonly referenceClock: ReferenceClock;
  readonly times: PairingTimes;
  /** See {@link Connections.writeUnwritten}. */
  readonly writeUnwritten: () => Promise<void>;
  readonly nameOf: (connection: string) => string;
  readonly portalOf: (portal: string) => ConnectedPortal | undefined;
}
