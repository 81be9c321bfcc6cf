import type { Command } from 'commander';
import type { ControlClient } from '../control/client.ts';
import { Failure } from '../core/failure.ts';
import type { ReloadOutcome } from '../core/reload.ts';
import { systemClock, systemTimers } from '../system/clock.ts';
import { version } from '../system/version.ts';
import { printable, printStderr } from './terminal/output.ts';

/** How often a hub that restarts is asked, in ms. */
const RESTART_POLL_INTERVAL = 250;
/** How long a hub may be unreachable during its restart, in ms: a slow disk makes for a slow start. */
const RESTART_TIMEOUT = 60_000;
/** What to say of a reload whose outcome the hub does not know. */
export const LOST_RELOAD =
  'the hub restarted during the reload: its log says why (with systemd: "sudo journalctl -u latchkey")';

/** The control socket of the systemd service. */
export const SERVICE_SOCKET = '/run/latchkey/control.sock';
/** How long systemd may take to describe the service, in ms. */
export const UNIT_TIMEOUT = 4000;

/**
 * Connects to the running hub over its control socket.
 * @throws Failure `hub_not_running`, `not_allowed`
 */
export async function connectHub(command: Command): Promise<ControlClient> {
  return connectIfRunning(command).catch(async (error: unknown) => {
    const isAbsent = error instanceof Failure && error.code === 'hub_not_running';
    throw (isAbsent && (await serviceFailure(command, error))) || error;
  });
}

/** The failure with the state of the service; null if the hub is not one, or it was only stopped. */
async function serviceFailure(command: Command, cause: unknown): Promise<Failure | null> {
  const [{ controlSocketCandidates }, { readUnit }] = await Promise.all([
    import('../configuration/file.ts'),
    import('../doctor/systemd-unit.ts'),
  ]);
  const sockets = await controlSocketCandidates(configPathOf(command), process.env);
  const unit = sockets.includes(SERVICE_SOCKET) ? await readUnit(AbortSignal.timeout(UNIT_TIMEOUT), process.env) : null;
  if (unit === null || (unit.activeState === 'inactive' && unit.result === 'success')) return null;
  const state = `${unit.activeState}${unit.exitStatus === 0 ? '' : `, exit status ${unit.exitStatus}`}`;
  const advice = '"sudo latchkey doctor" says why, and what to do';
  return new Failure('hub_not_running', `no hub is running here (the service latchkey: ${state})`, {
    advice,
    cause,
    includesCause: true,
  });
}

/** As {@link connectHub}, without asking systemd. */
async function connectIfRunning(command: Command): Promise<ControlClient> {
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

/** Waits until the hub has restarted. @throws Failure `hub_not_running` or `hub_stopping` if it does not come back */
export async function waitForRestart(command: Command): Promise<void> {
  const clock = systemClock('');
  const begun = clock.now().uptime;
  for (let wasGone = false; ; ) {
    await systemTimers.sleep(RESTART_POLL_INTERVAL);
    const passed = clock.now().uptime - begun;
    try {
      await using hub = await connectIfRunning(command);
      const { uptime } = (await hub.request('status')).hub;
      if (wasGone || uptime * 1000 <= passed) return;
    } catch (error) {
      if (!isHubUnavailable(error) || passed > RESTART_TIMEOUT) throw error;
      wasGone = true;
    }
  }
}

/** Waits until the reload has ended. The control socket is closed and opened again meanwhile. */
export async function waitForReload(id: string, command: Command): Promise<ReloadOutcome> {
  for (let gone = 0; ; ) {
    await systemTimers.sleep(RESTART_POLL_INTERVAL);
    try {
      await using hub = await connectIfRunning(command);
      const outcome = await hub.request('reloadOutcome', { id });
      if (outcome.state !== 'under_way') return outcome;
      gone = 0;
    } catch (error) {
      gone += RESTART_POLL_INTERVAL;
      if (!isHubUnavailable(error) || gone > RESTART_TIMEOUT) throw error;
    }
  }
}
