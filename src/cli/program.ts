import { Command } from 'commander';
import { version } from '../system/version.ts';
import { applianceCommand } from './appliance/appliance.ts';
import { inviteCommand, registrationCommand } from './appliance/registration.ts';
import { caCommand } from './ca.ts';
import { connectionCommand } from './connection/connection.ts';
import { refreshCommand, tokenCommand, unpairCommand } from './connection/grant.ts';
import { historyCommand } from './connection/history.ts';
import { demoCommand } from './demo/demo.ts';
import { doctorCommand } from './doctor.ts';
import { emulatorCommand } from './emulator/emulator.ts';
import { notifyCommand, reloadCommand, setupCodeCommand } from './hub-commands.ts';
import { completionCommand, manCommand } from './manual/manual.ts';
import { pairCommand } from './pair/pair.ts';
import { portalsCommand } from './portals/portals.ts';
import { serveCommand } from './serve.ts';
import { siteCommand } from './site.ts';
import { statusCommand } from './status/status.ts';
import { backupCommand, restoreCommand, snapshotCommand, storeKeyCommand } from './store.ts';
import { configureCommand, failUnknownCommand, runProgram } from './terminal/run-program.ts';

/**
 * Runs one command. Sets the process's exit status: 0 done, 1 failed, 2 wrong usage.
 * @param args without the program's own name
 */
export function run(args: readonly string[]): Promise<void> {
  return runProgram(createProgram, args);
}

/** The program with all its commands. Help, manual page and completions are generated from it. */
export function createProgram(): Command {
  const program = new Command('latchkey')
    .description(
      'Keeps the appliances of a home logged in to their cloud, and issues their access tokens on the home network.',
    )
    .version(version(), '--version', 'show the version')
    .option('--config <file>', 'the configuration (default: $LATCHKEY_CONFIG, else /etc/latchkey/latchkey.toml)')
    .helpOption('--help', 'show this help')
    .helpCommand(false);
  const commands = [
    serveCommand(),
    demoCommand(),
    emulatorCommand(),
    setupCodeCommand(),
    applianceCommand(),
    connectionCommand(),
    inviteCommand(),
    registrationCommand(),
    portalsCommand(),
    pairCommand(),
    unpairCommand(),
    statusCommand(),
    tokenCommand(),
    refreshCommand(),
    historyCommand(),
    reloadCommand(),
    notifyCommand(),
    caCommand(),
    storeKeyCommand(),
    snapshotCommand(),
    backupCommand(),
    restoreCommand(),
    siteCommand(),
    doctorCommand(),
    completionCommand(),
    helpCommand(),
  ];
  for (const command of commands) program.addCommand(command);
  program.addCommand(manCommand(), { hidden: true });
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
