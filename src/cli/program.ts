import { Command, CommanderError } from 'commander';
import { messageOf } from '../core/failure.ts';
import { rewriteCommands } from '../system/command-invocation.ts';
import { version } from '../system/version.ts';
import { applianceCommand } from './appliance/appliance.ts';
import { refreshCommand, tokenCommand, unpairCommand } from './appliance/grant.ts';
import { historyCommand } from './appliance/history.ts';
import { inviteCommand, registrationCommand } from './appliance/registration.ts';
import { caCommand } from './ca.ts';
import { connectionCommand } from './connection/connection.ts';
import { demoCommand } from './demo/demo.ts';
import { doctorCommand } from './doctor.ts';
import { emulatorCommand } from './emulator/emulator.ts';
import { notifyCommand, reloadCommand, setupCodeCommand } from './hub-commands.ts';
import { completionCommand, manCommand } from './manual/manual.ts';
import { pairCommand } from './pair/pair.ts';
import { portalsCommand } from './portals/portals.ts';
import { serveCommand } from './serve.ts';
import { statusCommand } from './status/status.ts';
import { backupCommand, restoreCommand, snapshotCommand, storeKeyCommand } from './store.ts';
import { installCrashHandler, printStackTraces, reportInternalError } from './terminal/crash.ts';
import { handleOutputErrors, printable, reportFailure } from './terminal/output.ts';

const EXIT_USAGE = 2;

/** Errors that are bugs in this program, which the user cannot fix. */
const PROGRAMMING_ERRORS = [TypeError, RangeError, ReferenceError, SyntaxError];

/**
 * Runs one command. Sets the process's exit status: 0 done, 1 failed, 2 wrong usage.
 * @param args without the program's own name
 */
export async function run(args: readonly string[]): Promise<void> {
  handleOutputErrors();
  installCrashHandler();
  try {
    await createProgram().parseAsync(args, { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : EXIT_USAGE;
    else if (PROGRAMMING_ERRORS.some((type) => error instanceof type)) reportInternalError(error);
    else {
      reportFailure(messageOf(error));
      printStackTraces(error);
    }
  }
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
    doctorCommand(),
    completionCommand(),
    helpCommand(),
  ];
  for (const command of commands) program.addCommand(command);
  program.addCommand(manCommand(), { hidden: true });
  configureCommand(program);
  return program;
}

/** Configures a command and its subcommands: wrong usage is thrown, and reported in one line that names the help. */
function configureCommand(command: Command): void {
  command
    .exitOverride()
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      writeErr: (text) => process.stderr.write(rewriteCommands(text)),
      outputError: (text, write) => write(toPrintableLines(text).replace(/^error: /, 'latchkey: ')),
    })
    .helpOption('--help', 'show this help')
    .showHelpAfterError(`(see "${commandPath(command)} --help")`);
  if (command.commands.length > 0) rejectUnknownCommand(command);
  for (const child of command.commands) configureCommand(child);
}

/** Makes text that repeats user input safe for a terminal, line by line: it cannot move the cursor. */
function toPrintableLines(text: string): string {
  return text.split('\n').map(printable).join('\n');
}

function commandPath(command: Command): string {
  return command.parent === null ? command.name() : `${commandPath(command.parent)} ${command.name()}`;
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

/** Rejects `--help` after an unknown command name; commander would show the help of its group. */
function rejectUnknownCommand(group: Command): void {
  group.addHelpText('before', () => {
    const [name] = group.args;
    const isKnown = name === 'help' || group.commands.some((command) => command.name() === name);
    if (name === undefined || name.startsWith('-') || isKnown) return '';
    return failUnknownCommand(group, name);
  });
}

function failUnknownCommand(group: Command, name: string): never {
  return group.error(`error: unknown command '${name}'`, { code: 'commander.unknownCommand' });
}
