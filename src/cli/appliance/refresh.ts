import { Command } from 'commander';
import { whatToDo } from '../../core/reports/problem.ts';
import { connectHub } from '../hub-connection.ts';
import { inTime } from '../terminal/duration.ts';
import { fail, print, printJson } from '../terminal/output.ts';

/** `latchkey refresh NAME` */
export function refreshCommand(): Command {
  return new Command('refresh')
    .description("refresh an appliance's token now, also when in doubt")
    .argument('<name>', "the appliance's name")
    .option('--json', "print the appliance's status as JSON")
    .action(async (name: string, options: { json?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const appliance = await hub.refresh(name);
      if (options.json === true) printJson(appliance);
      if (appliance.problem !== null) {
        fail(`${name}: ${appliance.problem.message}; ${whatToDo(appliance.problem.code, name)}`);
      } else if (options.json !== true) {
        print(`${name} is refreshed, its token expires ${inTime(appliance.expires_in)}.`);
      }
    });
}
