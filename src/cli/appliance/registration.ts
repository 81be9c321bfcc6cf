import { Command, Option } from 'commander';
import type { RegistrationAnswer } from '../../control/messages.ts';
import { connectHub } from '../hub-connection.ts';
import { durationWithin, formatDuration } from '../terminal/duration.ts';
import { notice, print, printJson } from '../terminal/output.ts';

/** Seconds. */
const DEFAULT_OPEN = 600;

/** `latchkey registration …` */
export function registrationCommand(): Command {
  return new Command('registration')
    .description('let appliances register themselves, for as long as you want')
    .addCommand(openCommand())
    .addCommand(closeCommand());
}

function openCommand(): Command {
  return new Command('open')
    .description('let any appliance introduce itself for a while; each waits until it is approved')
    .addOption(
      new Option('--for <duration>', 'how long: 90s, 2h, up to 24h')
        .argParser(durationWithin('1s', '24h'))
        .default(DEFAULT_OPEN, '10m'),
    )
    .option('--json', 'print JSON')
    .action(async (options: { for: number; json?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const opened = await hub.openRegistration(options.for);
      if (options.json === true) printJson({ open_for: opened.open_for });
      else print(explained(opened));
    });
}

function closeCommand(): Command {
  return new Command('close')
    .description('let no appliance introduce itself any more; an invite still works')
    .option('--json', 'print JSON')
    .action(async (options: { json?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const { open_for } = await hub.openRegistration(0);
      if (options.json === true) printJson({ open_for });
      else notice('Registration is closed.');
    });
}

function explained({ open_for, registration_endpoint, ca_fingerprint }: RegistrationAnswer): string {
  return `Registration is open for ${formatDuration(open_for)}. Give an appliance, where it asks:

  registration_endpoint  ${registration_endpoint}
  ca_fingerprint         ${ca_fingerprint}

Who has come: latchkey appliance list`;
}
