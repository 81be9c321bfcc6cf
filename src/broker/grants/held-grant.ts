import type { Appliance } from '../../core/appliances/appliance.ts';
import { type Grant, wantsAnotherScope } from '../../core/grants/grant.ts';
import type { Health } from '../../core/grants/health.ts';
import type { Replay } from '../../core/grants/retry-delays.ts';
import type { ConfiguredPortal, Portal } from '../../core/portal.ts';

/** A grant at work. */
export interface HeldGrant {
  readonly grant: Grant;
  readonly health: Health;
  /** The refresh under way: there is never more than one. It does not reject. */
  readonly refreshing: Promise<void> | null;
  /** When the last refresh was begun because the cloud had refused the token at hand, on the boot clock in ms. */
  readonly lastForcedRefresh: number | null;
  /** Before this the hub does not refresh it on its own, on the boot clock in ms: see `throttledUntil` of the core. */
  readonly throttledUntil: number;
}

/** The same, for who keeps it. */
export interface Held {
  grant: Grant;
  health: Health;
  refreshing: Promise<void> | null;
  lastForcedRefresh: number | null;
  throttledUntil: number;
  /** Writes what could not be written yet; until then the grant is served from memory and not refreshed. */
  unsaved: (() => Promise<boolean>) | null;
}

/** What the grants need to know of an appliance. */
export interface GrantHolder {
  readonly name: string;
  readonly portal: Portal;
  readonly identity: ConfiguredPortal;
  readonly replay: Replay;
}

/** Whether only a person's login can give an appliance a grant that it can go on with. @param held undefined where it has none at work */
export function needsPairing(appliance: Appliance, held: HeldGrant | undefined): boolean {
  return held === undefined || held.health.kind === 'refused' || wantsAnotherScope(appliance, held.grant);
}
