import type { ConfiguredPortal, Portal } from '../../core/portal.ts';
import type { Store } from '../../core/store.ts';
import type { Environment } from '../environment.ts';
import type { Grants } from '../grants/grants.ts';
import type { PortalClock } from '../time/portal-clock.ts';

/** What a pairing needs to know of the appliance's portal. */
export interface PairingPortal {
  readonly portal: Portal;
  readonly identity: ConfiguredPortal;
  /**
   * Where the portal shall bring the code, for a nonce; null while there is no address to be reached at, or where the
   * configuration wants none. Without the nonce (`''`) it says where a link leads, see `LoginLink`.
   */
  redirectUrl(nonce: string): string | null;
}

/** Times of pairings, in ms. */
export interface PairingTimes {
  readonly lifetime: number;
  readonly pollInterval: number;
}

/** What pairings share. */
export interface PairingContext {
  readonly environment: Environment;
  readonly store: Store;
  readonly grants: Grants;
  readonly portalClock: PortalClock;
  readonly times: PairingTimes;
  readonly nameOf: (appliance: string) => string;
  readonly portalOf: (portal: string) => PairingPortal | undefined;
}
