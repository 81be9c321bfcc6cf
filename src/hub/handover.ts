import type { Broker, BrokerHandover } from '../broker/open-broker.ts';
import type { Configuration } from '../configuration/configuration.ts';
import type { Instant, Timers } from '../core/clock.ts';
import type { AssertionReplayCache } from '../lan/oauth/assertion-replay-cache.ts';
import type { Counters } from '../metrics/counters.ts';

/**
 * What a daemon knows and its store does not, handed from one hub to the next when it takes another configuration over.
 * All else that is in memory is as it is after a restart: pairings, device flows and sessions are in the store, and what
 * limits a client (wrong secrets, polls that come too soon) starts anew, since only an installer can reload.
 */
export interface HandoverState {
  /** When the daemon was started. */
  readonly startedAt: Instant;
  readonly broker: BrokerHandover;
  /** Without them every assertion of the last half minute would have to be refused. */
  readonly usedAssertions: AssertionReplayCache;
  /** What was counted since the daemon was started. */
  readonly counters: Counters;
}

/** How often it is tried to write what a hub that goes has in memory alone, in ms. */
const SAVE_RETRY_INTERVAL = 2000;

/**
 * Waits for what was sent to the portal, and until it is written down; no refresh is started any more.
 * @param ended aborted where the hub is to end, and the next one does not come
 */
export async function drain(
  { grants, pairings }: Pick<Broker, 'grants' | 'pairings'>,
  timers: Timers,
  ended: AbortSignal,
): Promise<void> {
  grants.stop();
  await grants.whenIdle();
  await pairings[Symbol.asyncDispose]();
  while (!(await grants.save()) && !ended.aborted) await timers.sleep(SAVE_RETRY_INTERVAL, ended);
}

/** Whether neighbours find the one hub by what they know of the other: only its ports and keys may be others. */
export function hasSameAdvertisement(before: Configuration, next: Configuration): boolean {
  const told = ({ name, lan: { mdns, address, listen } }: Configuration) =>
    JSON.stringify([name, mdns, address, listen]);
  return told(before) === told(next);
}
