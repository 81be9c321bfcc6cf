import { Command } from 'commander';
import { formatDuration, parseDuration } from './duration.ts';
import { connectHub } from './hub-connection.ts';
import { notice } from './output.ts';

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
    .option('--for <duration>', 'how long: 90s, 10m (the default), up to 24h', parseDuration, DEFAULT_OPEN)
    .action(async (options: { for: number }, command: Command) => {
      await using hub = await connectHub(command);
      const seconds = Math.ceil(options.for);
      await hub.openRegistration(seconds);
      notice(`Registration is open for ${formatDuration(seconds)}. Who has come: latchkey appliance list`);
    });
}

function closeCommand(): Command {
  return new Command('close')
    .description('let no appliance introduce itself any more; an invite still works')
    .action(async (_options: unknown, command: Command) => {
      await using hub = await connectHub(command);
      await hub.openRegistration(0);
      notice('Registration is closed.');
    });
}
