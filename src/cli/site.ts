import { Command } from 'commander';
import { connectHub } from './hub-connection.ts';
import { printable, printStderr } from './terminal/output.ts';

/** `latchkey site` */
export function siteCommand(): Command {
  return new Command('site')
    .description('several hubs on one database; "latchkey status" lists them')
    .addCommand(forgetCommand());
}

/** `latchkey site forget NAME` */
function forgetCommand(): Command {
  return new Command('forget')
    .description('remove a hub that will not come back from the list of the site')
    .argument('<name>', "the hub's name or id")
    .action(async (name: string, _options: unknown, command: Command) => {
      await using hub = await connectHub(command);
      await hub.forgetHub(name);
      printStderr(`the hub ${printable(name)} is removed from the list`);
    });
}
