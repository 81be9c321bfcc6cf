import { Command } from 'commander';
import { connectHub } from './hub-connection.ts';
import { fail, print, printable, printJson } from './terminal/output.ts';

/** `latchkey notify --test` */
export function notifyCommand(): Command {
  return new Command('notify')
    .description('try whether notices arrive')
    .requiredOption('--test', 'send a notice that means nothing through every hook of [notify]')
    .option('--json', 'print JSON')
    .action(async (options: { json?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const trials = await hub.testNotices();
      if (options.json === true) printJson(trials);
      else {
        for (const { hook, target, ok, detail } of trials) {
          print(printable(`${hook} ${target}: ${ok ? 'ok' : 'failed'} (${detail})`));
        }
      }
      const failed = trials.filter(({ ok }) => !ok);
      if (trials.length === 0) {
        fail('no hook is configured: set command or webhook in [notify], and run "latchkey reload"');
      } else if (failed.length > 0) {
        const which = failed.map(({ hook }) => hook).join(' and the ');
        fail(`the ${which} of [notify] did not take the notice: mend that, and try again`);
      }
    });
}
