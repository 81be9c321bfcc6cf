import { Command } from 'commander';
import { connectHub } from '../hub-connection.ts';
import { print, printJson } from '../terminal/output.ts';

/** `latchkey token NAME` */
export function tokenCommand(): Command {
  return new Command('token')
    .description("print an appliance's current access token")
    .argument('<name>', "the appliance's name")
    .option('--json', 'print the whole token response')
    .action(async (name: string, options: { json?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const token = await hub.token(name);
      if (options.json === true) printJson(token);
      else print(token.access_token);
    });
}
