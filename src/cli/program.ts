import { Command } from 'commander';
import { version } from '../system/version.ts';
import { configureCommand, failUnknownCommand, runProgram } from './terminal/run-program.ts';

/** The commands, in the order of the help. A module is loaded only if its command is needed. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  serve: async () => (await import('./serve.ts')).serveCommand(),
  demo: async () => (await import('./demo/demo.ts')).demoCommand(),
  emulator: async () => (await import('./emulator/emulator.ts')).emulatorCommand(),
  'setup-code': async () => (await import('./hub-commands.ts')).setupCodeCommand(),
  appliance: async () => (await import('./appliance/appliance.ts')).applianceCommand(),
  connection: async () => (await import('./connection/connection.ts')).connectionCommand(),
  invite: async () => (await import('./appliance/registration.ts')).inviteCommand(),
  registration: async () => (await import('./appliance/registration.ts')).registrationCommand(),
  portal: async () => (await import('./portals/portal.ts')).portalCommand(),
  portals: async () => (await import('./portals/portals.ts')).portalsCommand(),
  pair: async () => (await import('./pair/pair.ts')).pairCommand(),
  unpair: async () => (await import('./connection/grant.ts')).unpairCommand(),
  status: async () => (await import('./status/status.ts')).statusCommand(),
  token: async () => (await import('./connection/grant.ts')).tokenCommand(),
  refresh: async () => (await import('./connection/grant.ts')).refreshCommand(),
  history: async () => (await import('./connection/history.ts')).historyCommand(),
  reload: async () => (await import('./hub-commands.ts')).reloadCommand(),
  notify: async () => (await import('./hub-commands.ts')).notifyCommand(),
  ca: async () => (await import('./ca.ts')).caCommand(),
  'store-key': async () => (await import('./store.ts')).storeKeyCommand(),
  snapshot: async () => (await import('./store.ts')).snapshotCommand(),
  backup: async () => (await import('./store.ts')).backupCommand(),
  restore: async () => (await import('./store.ts')).restoreCommand(),
  site: async () => (await import('./site.ts')).siteCommand(),
  doctor: async () => (await import('./doctor.ts')).doctorCommand(),
};

/**
 * Runs one command. Sets the process's exit status: 0 done, 1 failed, 2 wrong usage.
 * @param args without the program's own name
 */
export function run(args: readonly string[]): Promise<void> {
  return runProgram(() => createProgram(args[0]), args);
}

/**
 * The program. Help, manual page and completions are generated from it.
 * @param name of the only command that is needed; anything else for all of them
 */
export async function createProgram(name = ''): Promise<Command> {
  const program = new Command('latchkey')
    .description(
      'Keeps the appliances of a home logged in to their cloud, and issues their access tokens on the home network.',
    )
    .version(version(), '--version', 'show the version')
    .option('--config <file>', 'the configuration (default: $LATCHKEY_CONFIG, else /etc/latchkey/latchkey.toml)')
    .helpOption('--help', 'show this help')
    .helpCommand(false);
  const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (load === undefined) {
    for (const command of await Promise.all(Object.values(COMMANDS).map((each) => each()))) program.addCommand(command);
    const { completionCommand, manCommand } = await import('./manual/manual.ts');
    program.addCommand(completionCommand()).addCommand(helpCommand()).addCommand(manCommand(), { hidden: true });
  } else program.addCommand(await load());
  configureCommand(program);
  return program;
}

/** `latchkey help [command…]` */
function helpCommand(): Command {
  return new Command('help')
    .description('show the help of a command')
    .argument('[command...]', 'name of the command, such as "appliance add"')
    .action((names: readonly string[], _options: unknown, command: Command) => {
      let found = command.parent ?? command;
      for (const name of names) {
        found = found.commands.find((candidate) => candidate.name() === name) ?? failUnknownCommand(found, name);
      }
      found.help();
    });
}
