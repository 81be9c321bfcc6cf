import { Command } from 'commander';
import type { ControlClient } from '../control/client.ts';
import type { CredentialsAnswer } from '../control/messages.ts';
import { Failure } from '../core/failure.ts';
import { confirmed, mayAsk } from './confirmation.ts';
import { showCredentials } from './credentials.ts';
import { connectHub } from './hub-connection.ts';
import { fail } from './output.ts';

/** `latchkey appliance rotate-secret NAME` */
export function applianceRotateSecretCommand(): Command {
  return new Command('rotate-secret')
    .description('give an appliance a new secret, shown this once; the old one stops working')
    .argument('<name>', "the appliance's name")
    .option('--yes', 'do not ask back where the secret takes the place of a key; needed there without a terminal')
    .option('--json', 'print JSON')
    .action(async (name: string, options: { yes?: boolean; json?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const issued = await rotate(hub, name, options.yes === true);
      if (issued === null) fail(`${name} keeps its key`);
      else
        showCredentials(issued, `${name} has a new secret; what it had before no longer works.`, options.json === true);
    });
}

/** A key is replaced only where somebody has said so: its appliance has no place for a secret. Null where a person says no. */
async function rotate(hub: ControlClient, name: string, replaceKeys: boolean): Promise<CredentialsAnswer | null> {
  try {
    return await hub.rotateSecret(name, replaceKeys);
  } catch (error) {
    if (!(error instanceof Failure && error.code === 'appliance_has_keys') || !mayAsk()) throw error;
    const sure = await confirmed(`${name} proves itself by a key; a secret takes the key's place. Give it one?`);
    return sure ? await hub.rotateSecret(name, true) : null;
  }
}
