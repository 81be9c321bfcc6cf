import { latchkey } from './command.ts';

/** What the help of one command shows. */
export interface Help {
  /** Behind the program's name. */
  readonly path: readonly string[];
  readonly commands: readonly string[];
  /** By their long names, such as `--json`. */
  readonly options: readonly string[];
}

/** What `--help` shows of every command that there is, the program itself first. */
export async function everyHelp(path: readonly string[] = []): Promise<Help[]> {
  const { stdout } = await latchkey([...path, '--help']);
  const commands = termsOf(stdout, 'Commands').map((term) => term.split(' ')[0] ?? '');
  const options = [...termsOf(stdout, 'Options'), ...termsOf(stdout, 'Global Options')].flatMap(
    (term) => /--[\w-]+/.exec(term)?.[0] ?? [],
  );
  // The help of help is that of its group.
  const further = commands.filter((name) => name !== 'help');
  const below = await Promise.all(further.map((name) => everyHelp([...path, name])));
  return [{ path, commands, options }, ...below.flat()];
}

/** The terms in one part of a help text: what is behind the indentation of two. */
function termsOf(help: string, part: string): string[] {
  const lines = help.split('\n');
  const from = lines.indexOf(`${part}:`);
  if (from < 0) return [];
  const to = lines.indexOf('', from);
  return lines.slice(from + 1, to).flatMap((line) => /^ {2}(\S.*)$/.exec(line)?.[1] ?? []);
}
