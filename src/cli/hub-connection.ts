import type { Command } from 'commander';
import type { ControlClient } from '../control/client.ts';
import { Failure } from '../core/failure.ts';

/**
 * Connects to the running hub over its control socket.
 * @throws Failure `hub_not_running`, `not_allowed`
 */
export async function connectHub(command: Command): Promise<ControlClient> {
  const [{ controlSocketCandidates: controlSockets }, { connectControlClient: connectControl }] = await Promise.all([
    import('../configuration/file.ts'),
    import('../control/client.ts'),
  ]);
  return connectControl(await controlSockets(configPathOf(command), process.env));
}

/** What `--config` names, before or after the command's name. */
export function configPathOf(command: Command): string | undefined {
  return command.optsWithGlobals<{ config?: string }>().config;
}

/** Whether a hub is not there, or went before it had answered: one that is started anew comes back. */
export function isHubUnavailable(error: unknown): boolean {
  return error instanceof Failure && (error.code === 'hub_not_running' || error.code === 'hub_stopping');
}
