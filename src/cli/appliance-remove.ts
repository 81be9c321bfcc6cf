import { Command } from 'commander';
import { confirmed } from './confirmation.ts';
import { connectHub } from './hub-connection.ts';
import { fail, notice } from './output.ts';

/** `latchkey appliance remove NAME` */
export function applianceRemoveCommand(): Command {
  return new Command('remove')
    .description('remove an appliance and its grant')
    .argument('<name>', "the appliance's name")
    .option('--yes', 'do not ask back (without a terminal nothing is asked)')
    .action(async (name: string, options: { yes?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      if (options.yes !== true && !(await confirmed(`Remove ${name}, with its grant and its secret?`))) {
        fail(`${name} was not removed`);
        return;
      }
      await hub.removeAppliance(name);
      notice(`${name} is removed.`);
    });
}
