import type { ControlClient } from '../../control/client.ts';
import type { Timers } from '../../core/clock.ts';
import { Failure } from '../../core/failure.ts';

/** What `latchkey status` is told by the hub. */
export type Status = Awaited<ReturnType<ControlClient['status']>>;

/** What a watched hub is shown on. */
export interface StatusDisplay {
  /** Comes once a second. */
  show(status: Status): void;
  /** The hub does not answer; it is looked for once a second. */
  away(): void;
}

/** How often the hub is asked, in ms. */
const INTERVAL = 1000;
/** How long an answer may take, in ms. */
const PATIENCE = 5000;

/** What a hub says that goes, or is not back yet. */
const AWAY: readonly string[] = ['hub_not_running', 'hub_stopping'];

/**
 * Shows how the hub stands until the signal is aborted. A hub that goes is waited for.
 * @param connect finds the running hub
 * @throws Failure where the hub can't be asked at the beginning, or refuses later
 */
export async function watchStatus(
  connect: () => Promise<ControlClient>,
  display: StatusDisplay,
  timers: Timers,
  signal: AbortSignal,
): Promise<void> {
  let hub: ControlClient | null = await connect();
  try {
    while (!signal.aborted) {
      try {
        hub ??= await connect();
        const status = await within(hub.status(), timers);
        if (signal.aborted) return;
        display.show(status);
      } catch (error) {
        if (!(error instanceof Failure && AWAY.includes(error.code))) throw error;
        await hub?.[Symbol.asyncDispose]();
        hub = null;
        if (!signal.aborted) display.away();
      }
      await timers.sleep(INTERVAL, signal);
    }
  } finally {
    await hub?.[Symbol.asyncDispose]();
  }
}

/** @throws Failure `hub_stopping` where there is no answer in time */
async function within(answer: Promise<Status>, timers: Timers): Promise<Status> {
  const late = Promise.withResolvers<never>();
  const stop = timers.after(PATIENCE, () => late.reject(new Failure('hub_stopping', 'the hub does not answer')));
  try {
    return await Promise.race([answer, late.promise]);
  } finally {
    stop();
    // It fails when the connection is given up, and that is told already.
    answer.catch(() => undefined);
  }
}
