import { type Command, CommanderError } from 'commander';
import { messageOf } from '../../core/failure.ts';
import { rewriteCommands } from '../../system/command-invocation.ts';
import { nearestName } from '../../system/did-you-mean.ts';
import { installCrashHandler, printStackTraces, reportInternalError } from './crash.ts';
import { handleOutputErrors, printable, program, reportFailure } from './output.ts';

const EXIT_USAGE = 2;

/** Errors that are bugs in this program, which the user cannot fix. */
const PROGRAMMING_ERRORS = [TypeError, RangeError, ReferenceError, SyntaxError];

/**
 * Runs a program. Sets the process's exit status: 0 done, 1 failed, 2 wrong usage.
 * @param create makes the program
 * @param args without the program's own name
 */
export async function runProgram(create: () => Promise<Command>, args: readonly string[]): Promise<void> {
  handleOutputErrors();
  installCrashHandler();
  try {
    const command = await create();
    await command.parseAsync(args, { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : EXIT_USAGE;
    else if (PROGRAMMING_ERRORS.some((type) => error instanceof type)) reportInternalError(error);
    else {
      reportFailure(messageOf(error));
      printStackTraces(error);
    }
  }
}

/** Configures a command and its subcommands: wrong usage is thrown, and reported in one line that names the help. */
export function configureCommand(command: Command): void {
  command
    .exitOverride()
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      writeErr: (text) => process.stderr.write(rewriteCommands(text)),
      outputError: (text, write) => write(toPrintableLines(text).replace(/^error: /, `${program.name}: `)),
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

/** A longer list is that of the help. */
const MAX_LISTED_COMMANDS = 10;

/**
 * Rejects an unknown command name where commander would not: with `--help` it would show the help of the group, and a
 * group that has an action of its own would get it as one argument too many.
 */
function rejectUnknownCommand(group: Command): void {
  group.addHelpText('before', () => {
    const [name] = group.args;
    const isKnown = name === 'help' || group.commands.some((command) => command.name() === name);
    if (name === undefined || name.startsWith('-') || isKnown) return '';
    return failUnknownCommand(group, name);
  });
  if (group.registeredArguments.length > 0) return;
  group.allowExcessArguments().hook('preAction', (_, acting) => {
    const [name] = group.args;
    if (acting === group && name !== undefined) failUnknownCommand(group, name);
  });
  // A default command would get it as well.
  group.hook('preSubcommand', (_, chosen) => {
    const [name = chosen.name()] = group.args;
    if (name !== chosen.name() && !name.startsWith('-')) failUnknownCommand(group, name);
  });
}

/** Ends a group of commands with wrong usage; suggests the command that was meant, in the words of commander, or names all of a few. */
export function failUnknownCommand(group: Command, name: string): never {
  const names = group.commands.map((command) => command.name());
  const meant = nearestName(name, names) ?? names.find((one) => name.startsWith(one));
  const known = names.length > MAX_LISTED_COMMANDS ? '' : `\n(There are: ${names.join(', ')})`;
  const suggestion = meant ? `\n(Did you mean ${meant}?)` : known;
  return group.error(`error: unknown command '${name}'${suggestion}`, { code: 'commander.unknownCommand' });
}
