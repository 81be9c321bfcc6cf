import type { Broker, BrokerHandover } from '../broker/open-broker.ts';
import type { Configuration } from '../configuration/configuration.ts';
import type { Instant, Timers } from '../core/clock.ts';
import type { AssertionReplayCache } from '../lan/oauth/assertion-replay-cache.ts';
import type { Counters } from '../metrics/counters.ts';

/**
 * What a daemon has only in memory and a reload passes from one hub to the next. All other memory is as after a
 * restart: pairings, device flows and sessions are in the store, and the limits of a client (wrong secrets, polls that
 * come too soon) start again, because only an installer can reload.
 */
export interface HandoverState {
  /** When the daemon was started. */
  readonly startedAt: Instant;
  readonly broker: BrokerHandover;
  /** Without it the hub would have to reject every assertion of the last half minute. */
  readonly usedAssertions: AssertionReplayCache;
  /** The counts since the daemon was started. */
  readonly counters: Counters;
}

/** How often a hub that is replaced retries to write what is only in memory, in ms. */
const SAVE_RETRY_INTERVAL = 2000;

/**
 * Starts no further refresh, and waits until requests to the portal have ended and their results are on disk.
 * @param ended aborted if the hub must stop and no other one replaces it
 */
export async function drain(
  { grants, grantImports, pairings }: Pick<Broker, 'grants' | 'grantImports' | 'pairings'>,
  timers: Timers,
  ended: AbortSignal,
): Promise<void> {
  grants.stop();
  await Promise.all([grants.whenIdle(), grantImports[Symbol.asyncDispose]()]);
  await pairings[Symbol.asyncDispose]();
  while (!(await grants.save()) && !ended.aborted) await timers.sleep(SAVE_RETRY_INTERVAL, ended);
}

/** Whether both configurations announce the hub with the same names and addresses; ports and keys may differ. */
export function hasSameAdvertisement(before: Configuration, next: Configuration): boolean {
  const advertised = ({ name, lan: { mdns, address, listen } }: Configuration) =>
    JSON.stringify([name, mdns, address, listen]);
  return advertised(before) === advertised(next);
}
