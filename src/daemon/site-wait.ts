import type { Configuration } from '../configuration/configuration.ts';
import type { Timers } from '../core/clock.ts';
import { Failure, messageOf } from '../core/failure.ts';
import type { Log } from '../core/log.ts';

/** How often a hub tries to start while the database of its site is away, in ms. */
const RETRY_INTERVAL = 2000;
/** How often that is logged, in ms. */
const LOG_INTERVAL = 60_000;

interface SiteWaitOptions {
  readonly configuration: Pick<Configuration, 'site'>;
  readonly log: Log;
  readonly timers: Timers;
  /** Milliseconds on the clock of the timers. */
  now(): number;
  /** Aborted when the daemon must stop. */
  readonly ended: AbortSignal;
  /** Called with each reason why the hub can't start yet. */
  onWaiting(reason: string): void;
}

/**
 * Starts a hub. While the database of its site is away, it waits, says why, and tries again.
 * @returns null if the daemon must stop before the hub has started
 * @throws as `start`, if waiting does not help
 */
export async function startWithSite<Hub>(start: () => Promise<Hub>, options: SiteWaitOptions): Promise<Hub | null> {
  const { configuration, log, timers, now, ended, onWaiting } = options;
  let logged = Number.NEGATIVE_INFINITY;
  while (!ended.aborted) {
    try {
      return await start();
    } catch (error) {
      if (!isDatabaseUnavailable(error, configuration)) throw error;
      const reason = messageOf(error);
      if (now() - logged >= LOG_INTERVAL) {
        logged = now();
        log.warn('waiting_for_database', { error: reason });
      }
      onWaiting(reason);
      await timers.sleep(RETRY_INTERVAL, ended);
    }
  }
  return null;
}

/** On a site also a read or a write that fails during the start means that the database is away. */
function isDatabaseUnavailable(error: unknown, { site }: Pick<Configuration, 'site'>): boolean {
  if (site === null || !(error instanceof Failure)) return false;
  return (
    error.code === 'database_unavailable' || error.code === 'store_unreadable' || error.code === 'store_unwritable'
  );
}
