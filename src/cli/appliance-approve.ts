import { Command } from 'commander';
import { connectHub } from './hub-connection.ts';
import { print, printJson } from './output.ts';

/** `latchkey appliance approve NAME` */
export function applianceApproveCommand(): Command {
  return new Command('approve')
    .description('let an appliance that introduced itself do what appliances do; "appliance remove" refuses it')
    .argument('<name>', "the appliance's name, as the list shows it")
    .option('--json', "print the appliance's status as JSON")
    .action(async (name: string, options: { json?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const appliance = await hub.approveAppliance(name);
      if (options.json === true) printJson(appliance);
      else print(`${name} is approved. Unless it pairs itself, pair it next: latchkey pair ${name}`);
    });
}
