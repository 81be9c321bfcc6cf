import { Command } from 'commander';
import { connectHub } from '../hub-connection.ts';
import { conditionLine } from '../status/text.ts';
import { formatTimeUntil } from '../terminal/duration.ts';
import { print, printJson, printStderr, reportFailure } from '../terminal/output.ts';
import { confirm } from '../terminal/prompt.ts';

/** `latchkey refresh NAME` */
export function refreshCommand(): Command {
  return new Command('refresh')
    .description(
      "refresh an appliance's token now instead of waiting until it is due, even after a lost answer of the portal",
    )
    .argument('<name>', "the appliance's name")
    .option('--json', "print the appliance's status as JSON")
    .action(async (name: string, options: { json?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const appliance = await hub.refresh(name);
      if (options.json === true) printJson(appliance);
      if (appliance.problem !== null) {
        const { code, message } = appliance.problem;
        const { conditions } = await hub.status();
        const condition = conditions.find((one) => one.appliance === name && one.code === code);
        reportFailure(condition === undefined ? `${name}: ${message}` : conditionLine(condition));
      } else if (options.json !== true) {
        print(`${name} is refreshed; its access token expires ${formatTimeUntil(appliance.expires_in)}.`);
      }
    });
}

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

/** `latchkey unpair NAME` */
export function unpairCommand(): Command {
  return new Command('unpair')
    .description('disconnect an appliance: delete its grant; it stays registered')
    .argument('<name>', "the appliance's name")
    .option('--yes', 'do not ask for confirmation (without a terminal it never asks)')
    .action(async (name: string, options: { yes?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const question = `Delete the grant of ${name}? The appliance gets no tokens until somebody logs in at the portal again.`;
      if (options.yes !== true && !(await confirm(question))) {
        reportFailure(`nothing was changed: ${name} keeps its grant`);
        return;
      }
      await hub.unpair(name);
      printStderr(`${name} is unpaired.`);
    });
}
