import type { Timers } from '../core/clock.ts';

/** Resolves with `work`, and no later than after `limit` ms. */
export async function within(work: Promise<unknown>, limit: number, timers: Timers): Promise<void> {
  const done = new AbortController();
  await Promise.race([work.finally(() => done.abort()), timers.sleep(limit, done.signal)]);
}
