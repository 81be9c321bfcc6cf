import { Command } from 'commander';
import { confirmed } from './confirmation.ts';
import { connectHub } from './hub-connection.ts';
import { fail, print, printable, printJson } from './output.ts';

/** `latchkey appliance approve NAME` */
export function applianceApproveCommand(): Command {
  return new Command('approve')
    .description('let an appliance that introduced itself do what appliances do; "appliance remove" refuses it')
    .argument('<name>', "the appliance's name, as the list shows it")
    .option('--code <code>', 'the code that the appliance shows; one with another code is not approved')
    .option('--json', "print the appliance's status as JSON")
    .action(async (name: string, options: { code?: string; json?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const { hub: itself, appliances } = await hub.status();
      const waiting = appliances.find((appliance) => appliance.name === name)?.waiting_for_approval;
      const asked = itself.registration_asked ?? 0;
      const from = waiting?.address == null ? '' : `, which asked from ${printable(waiting.address)}`;
      if (waiting !== undefined && options.code === undefined && asked > 1) {
        const question = `${asked} appliances asked to join. Does yours show the code ${waiting.comparison_code}, as ${name}${from}?`;
        if (!(await confirmed(question))) {
          fail(`${name} was not approved`);
          return;
        }
      }
      // The one that was looked at: another may have come by its name since.
      const appliance = await hub.approveAppliance(name, options.code ?? waiting?.comparison_code ?? null);
      if (options.json === true) printJson(appliance);
      else {
        const code = waiting === undefined ? '' : ` (code ${waiting.comparison_code}${from})`;
        print(`${name}${code} is approved. Unless it pairs itself, pair it next: latchkey pair ${name}`);
      }
    });
}
