import type { Command } from 'commander';
import type { ControlClient } from '../control/client.ts';
import { Failure } from '../core/failure.ts';
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
