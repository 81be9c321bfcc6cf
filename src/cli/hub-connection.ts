import type { Command } from 'commander';
import type { ControlClient } from '../control/client.ts';

/** The configuration file that was named on the command line, before or after the command's name. */
function configFile(command: Command): string | undefined {
  const { config } = command.optsWithGlobals<{ config?: string }>();
  return config;
}

/**
 * Connects to the running hub over its control socket.
 * @throws Failure `hub_not_running`, `not_allowed`
 */
export async function connectHub(command: Command): Promise<ControlClient> {
  const [{ controlSockets }, { connectControl }] = await Promise.all([
    import('../hub/configuration.ts'),
    import('../control/client.ts'),
  ]);
  return connectControl(await controlSockets(configFile(command), process.env));
}
