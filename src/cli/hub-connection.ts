import type { Command } from 'commander';
import type { ControlClient } from '../control/client.ts';
import { Failure } from '../core/failure.ts';
import { systemClock, systemTimers } from '../system/clock.ts';
import { version } from '../system/version.ts';
import { printable, printStderr } from './terminal/output.ts';

/**
 * Connects to the running hub over its control socket.
 * @throws Failure `hub_not_running`, `not_allowed`
 */
export async function connectHub(command: Command): Promise<ControlClient> {
  const [{ controlSocketCandidates }, { connectControlClient }] = await Promise.all([
    import('../configuration/file.ts'),
    import('../control/client.ts'),
  ]);
  return connectControlClient(await controlSocketCandidates(configPathOf(command), process.env), warnOfOtherVersion);
}

function warnOfOtherVersion(running: string): void {
  printStderr(`the running hub has version ${printable(running)}, this command has ${version()}: restart the hub`);
}

/** The value of `--config`, given before or after the command's name. */
export function configPathOf(command: Command): string | undefined {
  return command.optsWithGlobals<{ config?: string }>().config;
}

/** Whether no hub is running, or it stopped before it responded: during a restart this is temporary. */
export function isHubUnavailable(error: unknown): boolean {
  return error instanceof Failure && (error.code === 'hub_not_running' || error.code === 'hub_stopping');
}

/** How often a hub that restarts is asked, in ms. */
export const RESTART_POLL_INTERVAL = 250;
/** How long a hub may be unreachable during its restart, in ms: a slow disk makes for a slow start. */
export const RESTART_TIMEOUT = 60_000;

/** Waits until the hub has restarted. @throws Failure `hub_not_running` or `hub_stopping` if it does not come back */
export async function waitForRestart(command: Command): Promise<void> {
  const clock = systemClock('');
  const begun = clock.now().uptime;
  for (let wasGone = false; ; ) {
    await systemTimers.sleep(RESTART_POLL_INTERVAL);
    const passed = clock.now().uptime - begun;
    try {
      await using hub = await connectHub(command);
      const { uptime } = (await hub.request('status')).hub;
      if (wasGone || uptime * 1000 <= passed) return;
    } catch (error) {
      if (!isHubUnavailable(error) || passed > RESTART_TIMEOUT) throw error;
      wasGone = true;
    }
  }
}
