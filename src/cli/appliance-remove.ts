import { Command } from 'commander';
import { confirmed } from './confirmation.ts';
import { connectHub } from './hub-connection.ts';
import { fail, notice } from './output.ts';

/** `latchkey appliance remove NAME` */
export function applianceRemoveCommand(): Command {
  return new Command('remove')
    .description('remove an appliance and its grant, or refuse one that waits for approval')
    .argument('<name>', "the appliance's name")
    .option('--yes', 'do not ask back (without a terminal nothing is asked)')
    .action(async (name: string, options: { yes?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const { appliances } = await hub.status();
      // One that is not there is the hub's to refuse, and nothing to ask back about.
      const found = appliances.find((appliance) => appliance.name === name);
      const question =
        found?.waiting_for_approval === undefined
          ? `Remove ${name}, with its grant and its secret?`
          : `Refuse ${name}, which waits for approval?`;
      if (options.yes !== true && found !== undefined && !(await confirmed(question))) {
        fail(`${name} was not removed`);
        return;
      }
      await hub.removeAppliance(name);
      notice(`${name} is removed.`);
    });
}
