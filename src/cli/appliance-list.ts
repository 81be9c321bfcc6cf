import { Command } from 'commander';
import { appliancesText } from './appliance-table.ts';
import { connectHub } from './hub-connection.ts';
import { print, printJson } from './output.ts';

/** `latchkey appliance list` */
export function applianceListCommand(): Command {
  return new Command('list')
    .description('list the appliances and how they stand')
    .option('--names', 'print their names alone, one a line')
    .option('--json', 'print JSON')
    .action(async (options: { names?: boolean; json?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const { hub: itself, appliances } = await hub.status();
      if (options.json === true) printJson(appliances);
      else if (options.names === true) for (const { name } of appliances) print(name);
      else print(appliancesText(appliances, itself));
    });
}
