import { Command } from 'commander';
import { connectHub } from '../hub-connection.ts';
import { fail, notice } from '../terminal/output.ts';
import { confirmed } from '../terminal/prompt.ts';

/** `latchkey unpair NAME` */
export function unpairCommand(): Command {
  return new Command('unpair')
    .description("forget an appliance's grant; it stays registered")
    .argument('<name>', "the appliance's name")
    .option('--yes', 'do not ask back (without a terminal nothing is asked)')
    .action(async (name: string, options: { yes?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const question = `Forget the grant of ${name}? Somebody has to log in again before it gets tokens.`;
      if (options.yes !== true && !(await confirmed(question))) {
        fail(`${name} was not unpaired`);
        return;
      }
      await hub.unpair(name);
      notice(`${name} is unpaired.`);
    });
}
