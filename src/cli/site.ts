import { Command } from 'commander';
import { connectHub } from './hub-connection.ts';
import { printable, printStderr } from './terminal/output.ts';

/** `latchkey site` */
export function siteCommand(): Command {
  return new Command('site')
    .description('several hubs on one database; "latchkey status" lists them')
    .addCommand(removeCommand());
}

/** `latchkey site remove NAME` */
function removeCommand(): Command {
  return new Command('remove')
    .description('remove a hub that will not come back from the list of the site')
    .argument('<name>', "the hub's name or id")
    .action(async (name: string, _options: unknown, command: Command) => {
      await using hub = await connectHub(command);
      await hub.request('removeHub', { name });
      printStderr(`the hub ${printable(name)} is removed from the list`);
    });
}
