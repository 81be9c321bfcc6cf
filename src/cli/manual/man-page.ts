import { wrapText } from '../terminal/table.ts';
import { type CommandDefinition, flattenCommands, type OptionDefinition } from './command-definition.ts';

/** Characters of a line of the source. */
const LINE_WIDTH = 78;

/**
 * The manual page latchkey(1), for `man` (groff's man macros).
 * @param date of the page, such as `2026-11-22`
 */
export function manPage(program: CommandDefinition, date: string): string {
  const own = program.options.filter(({ name }) => name !== '--help');
  return `${[
    `.TH LATCHKEY 1 ${date} Latchkey`,
    '.SH NAME',
    ...textLines(
      `latchkey - ${program.description.replace(/\.$/, '').replace(/^\w/, (letter) => letter.toLowerCase())}`,
    ),
    '.SH SYNOPSIS',
    '.B latchkey',
    '.RI [ options ]',
    '.I command',
    '.RI [ arguments ]',
    '.SH DESCRIPTION',
    ...DESCRIPTION.flatMap((text, index) => [...(index === 0 ? [] : ['.PP']), ...textLines(text)]),
    '.SH OPTIONS',
    ...own.flatMap(optionEntry),
    ...optionEntry({ name: '--help', flags: '--help', description: 'show the help of a command', value: null }),
    '.SH COMMANDS',
    ...flattenCommands(program)
      .filter(({ commands }) => commands.length === 0)
      .flatMap((command) => commandSection(command, own)),
    '.SH EXIT STATUS',
    ...EXIT_STATUS.flatMap(formatEntry),
    '.SH ENVIRONMENT',
    ...ENVIRONMENT.flatMap(formatEntry),
    '.SH FILES',
    ...FILES.flatMap(formatEntry),
    '.SH SEE ALSO',
    ...textLines(SEE_ALSO),
  ].join('\n')}\n`;
}

/** @param general options that every command takes, and that are told once */
function commandSection(command: CommandDefinition, general: readonly OptionDefinition[]): string[] {
  const told = new Set(['--help', ...general.map(({ name }) => name)]);
  const options = command.options.filter(({ name }) => !told.has(name));
  const synopsis = [
    ...command.path,
    ...(options.length > 0 ? ['[options]'] : []),
    ...command.arguments.map(({ term }) => term),
  ].join(' ');
  return [
    `.SS ${quoteArgument(synopsis)}`,
    ...textLines(sentence(command.description)),
    ...command.arguments.flatMap(({ name, description }) => formatEntry({ term: name, text: description })),
    ...options.flatMap(optionEntry),
  ];
}

function optionEntry({ flags, description, value: values }: OptionDefinition): string[] {
  const choices = values?.kind === 'choices' ? `; one of ${values.choices.join(', ')}` : '';
  return formatEntry({ term: flags, text: `${description}${choices}` });
}

function formatEntry({ term, text }: ManPageEntry): string[] {
  return ['.TP', `.B ${escapeText(term)}`, ...textLines(sentence(text))];
}

function sentence(text: string): string {
  const whole = text.replace(/^[a-z]/, (letter) => letter.toUpperCase());
  return /[.:?]$/.test(whole) ? whole : `${whole}.`;
}

/** A text in lines that people can compare. */
function textLines(text: string): string[] {
  return wrapText(text.split(/\s+/).map(escapeText).join(' '), LINE_WIDTH);
}

/** Text of a line: no backslash acts, hyphens can be copied, and no line is taken for a request. */
function escapeText(text: string): string {
  const safe = text.replaceAll('\\', '\\e').replaceAll('-', '\\-').replaceAll(/\s+/g, ' ');
  return /^[.']/.test(safe) ? `\\&${safe}` : safe;
}

/** One argument of a macro. */
function quoteArgument(text: string): string {
  return `"${escapeText(text).replaceAll('"', '\\(dq')}"`;
}

/** A term and what it means. */
interface ManPageEntry {
  readonly term: string;
  readonly text: string;
}

/** The paragraphs of the description. */
const DESCRIPTION: readonly string[] = [
  'The hub pairs each appliance of a home once, through a link at which a person logs in at the portal; from then on it keeps the grant fresh, and hands out bearer tokens on the home network to any appliance that proves who it is. To appliances it is a standard OAuth authorization server.',
  'Commands other than serve, emulator, demo and doctor speak to the running hub over its control socket: as root, as the user of the hub, or as a member of the group latchkey-admin, if the machine has that group.',
  'Results go to standard output, and everything else to standard error. With --json a result is one JSON value a line.',
];

const EXIT_STATUS: readonly ManPageEntry[] = [
  { term: '0', text: 'done' },
  { term: '1', text: 'failed: one line on standard error says what, where, and what to do next' },
  { term: '2', text: 'wrong usage' },
  { term: '3', text: 'status: the result is there, and a person is needed: a notice of severity error stands' },
  { term: '78', text: 'serve, under systemd: it would fail in the same way again, so it is not to be started again' },
  { term: '130', text: 'ended by Ctrl-C' },
];

const ENVIRONMENT: readonly ManPageEntry[] = [
  { term: 'LATCHKEY_CONFIG', text: 'the configuration, where --config names none' },
  {
    term: 'LATCHKEY_SECTION_KEY',
    text: 'overrides one key of the configuration: LATCHKEY_LAN_HTTPS_PORT is https_port of [lan]',
  },
  { term: 'LATCHKEY_DEBUG', text: 'if it is 1, a failure is followed by the stacks of the error and of its causes' },
  { term: 'LATCHKEY_PROGRAM', text: 'how messages name this program, if it is not started as latchkey' },
  { term: 'NO_COLOR', text: 'if it is set, nothing is coloured' },
  { term: 'TERM', text: 'if it is dumb, no line is written over' },
  { term: 'STATE_DIRECTORY, RUNTIME_DIRECTORY, CREDENTIALS_DIRECTORY', text: 'as systemd sets them for a service' },
  { term: 'XDG_STATE_HOME, XDG_RUNTIME_DIR', text: "where the state and the control socket are of a user's own hub" },
];

const FILES: readonly ManPageEntry[] = [
  { term: '/etc/latchkey/latchkey.toml', text: 'the configuration' },
  { term: '/etc/latchkey/credentials/', text: "the portals' client secrets" },
  { term: '/var/lib/latchkey/', text: 'the state: the store, its key, the CA' },
  { term: '/run/latchkey/control.sock', text: 'the control socket of the running hub' },
  { term: '/usr/share/doc/latchkey/examples/latchkey.toml', text: 'every key of the configuration, with its default' },
];

const SEE_ALSO = '/usr/share/doc/latchkey/README.md, systemctl(1), journalctl(1)';
