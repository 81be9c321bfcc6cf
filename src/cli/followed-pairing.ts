import type { ControlClient } from '../control/client.ts';
import type { Timers } from '../core/clock.ts';
import { Failure } from '../core/failure.ts';
import type { PairingReport } from '../core/pairing-report.ts';

/** How often a hub that has gone is looked for, in ms. */
const INTERVAL = 250;
/** How long it may stay away, in ms: one that is reloaded, or that systemd starts again, is back by then. */
const PATIENCE = 10_000;

/**
 * Follows a pairing as {@link ControlClient.followPairing} does, and goes on where the hub comes back: the pairing is in its
 * store.
 */
export async function* followThrough(
  hub: Pick<ControlClient, 'followPairing'>,
  pairing: string,
  signal: AbortSignal,
  timers: Timers,
): AsyncGenerator<PairingReport> {
  for (let gone = 0; !signal.aborted; gone += INTERVAL) {
    try {
      for await (const report of hub.followPairing(pairing, signal)) {
        gone = 0;
        yield report;
      }
      return;
    } catch (error) {
      if (!(error instanceof Failure && error.code === 'hub_stopping') || gone >= PATIENCE) throw error;
    }
    await timers.sleep(INTERVAL, signal);
  }
}
