import type { Broker } from '../broker/open-broker.ts';
import type { Configuration } from '../configuration/configuration.ts';
import type { Timers } from '../core/clock.ts';

/** How often it is tried to write what a hub that goes has in memory alone, in ms. */
const SAVING_INTERVAL = 2000;

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
  await grants.settled();
  await pairings[Symbol.asyncDispose]();
  while (!(await grants.save()) && !ended.aborted) await timers.sleep(SAVING_INTERVAL, ended);
}

/** Whether neighbours find the one hub by what they know of the other: only its ports and keys may be others. */
export function isAnnouncedAlike(before: Configuration, next: Configuration): boolean {
  const told = ({ name, lan: { mdns, address, listen } }: Configuration) =>
    JSON.stringify([name, mdns, address, listen]);
  return told(before) === told(next);
}
