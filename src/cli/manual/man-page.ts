import { type CommandDefinition, everyCommand, type OptionDefinition } from './commands.ts';
import { ABOUT, ENVIRONMENT, type Entry, EXIT_STATUS, FILES, SEE_ALSO } from './man-texts.ts';

/** Characters of a line of the source. */
const WIDTH = 78;

/**
 * The manual page latchkey(1), for `man` (groff's man macros).
 * @param date of the page, such as `2026-11-22`
 */
export function manPage(program: CommandDefinition, date: string): string {
  const own = program.options.filter(({ name }) => name !== '--help');
  return `${[
    `.TH LATCHKEY 1 ${date} Latchkey`,
    '.SH NAME',
    ...filled(`latchkey - ${program.description.replace(/\.$/, '').replace(/^\w/, (letter) => letter.toLowerCase())}`),
    '.SH SYNOPSIS',
    '.B latchkey',
    '.RI [ options ]',
    '.I command',
    '.RI [ arguments ]',
    '.SH DESCRIPTION',
    ...ABOUT.flatMap((text, index) => [...(index === 0 ? [] : ['.PP']), ...filled(text)]),
    '.SH OPTIONS',
    ...own.flatMap(option),
    ...option({ name: '--help', flags: '--help', description: 'show the help of a command', values: null }),
    '.SH COMMANDS',
    ...everyCommand(program)
      .filter(({ commands }) => commands.length === 0)
      .flatMap((command) => section(command, own)),
    '.SH EXIT STATUS',
    ...EXIT_STATUS.flatMap(entry),
    '.SH ENVIRONMENT',
    ...ENVIRONMENT.flatMap(entry),
    '.SH FILES',
    ...FILES.flatMap(entry),
    '.SH SEE ALSO',
    ...filled(SEE_ALSO),
  ].join('\n')}\n`;
}

/** @param general options that every command takes, and that are told once */
function section(command: CommandDefinition, general: readonly OptionDefinition[]): string[] {
  const told = new Set(['--help', ...general.map(({ name }) => name)]);
  const options = command.options.filter(({ name }) => !told.has(name));
  const synopsis = [
    ...command.path,
    ...(options.length > 0 ? ['[options]'] : []),
    ...command.arguments.map(({ term }) => term),
  ].join(' ');
  return [
    `.SS ${quoted(synopsis)}`,
    ...filled(sentence(command.description)),
    ...command.arguments.flatMap(({ name, description }) => entry({ term: name, text: description })),
    ...options.flatMap(option),
  ];
}

function option({ flags, description, values }: OptionDefinition): string[] {
  const choices = values?.kind === 'choices' ? `; one of ${values.choices.join(', ')}` : '';
  return entry({ term: flags, text: `${description}${choices}` });
}

function entry({ term, text }: Entry): string[] {
  return ['.TP', `.B ${escaped(term)}`, ...filled(sentence(text))];
}

function sentence(text: string): string {
  const whole = text.replace(/^[a-z]/, (letter) => letter.toUpperCase());
  return /[.:?]$/.test(whole) ? whole : `${whole}.`;
}

/** A text in lines that people can compare. */
function filled(text: string): string[] {
  const lines: string[] = [];
  for (const word of text.split(/\s+/).map(escaped)) {
    const longer = `${lines.at(-1) ?? ''} ${word}`.trimStart();
    if (lines.length > 0 && longer.length <= WIDTH) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

/** Text of a line: no backslash acts, hyphens can be copied, and no line is taken for a request. */
function escaped(text: string): string {
  const safe = text.replaceAll('\\', '\\e').replaceAll('-', '\\-').replaceAll(/\s+/g, ' ');
  return /^[.']/.test(safe) ? `\\&${safe}` : safe;
}

/** One argument of a macro. */
function quoted(text: string): string {
  return `"${escaped(text).replaceAll('"', '\\(dq')}"`;
}
