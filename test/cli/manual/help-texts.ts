import type { Command } from 'commander';
import { createProgram } from '../../../src/cli/program.ts';

/** The help of one command. */
export interface CommandHelp {
  /** The words after the program's name. */
  readonly path: readonly string[];
  readonly commands: readonly string[];
  /** The long names, such as `--json`. */
  readonly options: readonly string[];
}

const PROGRAM = await createProgram();

/** What `--help` shows for every command, the program itself first. */
export function allHelpTexts(command: Command = PROGRAM, path: readonly string[] = []): CommandHelp[] {
  const help = command.helpInformation();
  const commands = termsOf(help, 'Commands').map((term) => term.split(' ')[0] ?? '');
  const options = [...termsOf(help, 'Options'), ...termsOf(help, 'Global Options')].flatMap(
    (term) => /--[\w-]+/.exec(term)?.[0] ?? [],
  );
  // `help` shows the help of its group.
  const further = command.commands.filter((child) => child.name() !== 'help' && commands.includes(child.name()));
  return [{ path, commands, options }, ...further.flatMap((child) => allHelpTexts(child, [...path, child.name()]))];
}

/** The lines in one section of a help text that are indented by two spaces. */
function termsOf(help: string, part: string): string[] {
  const lines = help.split('\n');
  const from = lines.indexOf(`${part}:`);
  if (from < 0) return [];
  const to = lines.indexOf('', from);
  return lines.slice(from + 1, to).flatMap((line) => /^ {2}(\S.*)$/.exec(line)?.[1] ?? []);
}
