import { Command } from 'commander';
import { showCredentials } from './credentials.ts';
import { connectHub } from './hub-connection.ts';

interface Options {
  readonly scope?: string;
  readonly portal?: string;
  readonly json?: boolean;
}

/** `latchkey appliance add NAME` */
export function applianceAddCommand(): Command {
  return new Command('add')
    .description('register an appliance; its secret is shown this once')
    .argument('<name>', 'what to call it: 1 to 63 of a-z, 0-9 and "-"')
    .option('--scope <scope>', 'the scope that its grant is asked for, as "A B"')
    .option('--portal <name>', 'the portal that grants it (default: the first one of the configuration)')
    .option('--json', 'print JSON')
    .action(async (name: string, options: Options, command: Command) => {
      await using hub = await connectHub(command);
      const issued = await hub.addAppliance(name, options.scope ?? null, options.portal ?? null);
      showCredentials(issued, `${name} is registered. Pair it next: latchkey pair ${name}`, options.json === true);
    });
}
