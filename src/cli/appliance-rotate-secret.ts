import { Command } from 'commander';
import { showCredentials } from './credentials.ts';
import { connectHub } from './hub-connection.ts';

/** `latchkey appliance rotate-secret NAME` */
export function applianceRotateSecretCommand(): Command {
  return new Command('rotate-secret')
    .description('give an appliance a new secret, shown this once; the old one stops working')
    .argument('<name>', "the appliance's name")
    .option('--json', 'print JSON')
    .action(async (name: string, options: { json?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const issued = await hub.rotateSecret(name);
      showCredentials(issued, `${name} has a new secret; the old one no longer works.`, options.json === true);
    });
}
