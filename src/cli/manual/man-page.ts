import { wrapText } from '../terminal/table.ts';
import { type CommandDefinition, flattenCommands, type OptionDefinition } from './command-definition.ts';

/** Maximum characters in a line of the roff source. */
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

/** @param general options of every command, which have their own section */
function commandSection(command: CommandDefinition, general: readonly OptionDefinition[]): string[] {
  const documented = new Set(['--help', ...general.map(({ name }) => name)]);
  const options = command.options.filter(({ name }) => !documented.has(name));
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

/** A term and what it means. */
export function formatEntry({ term, text }: ManPageEntry): string[] {
  return ['.TP', `.B ${escapeText(term)}`, ...textLines(sentence(text))];
}

function sentence(text: string): string {
  const whole = text.replace(/^[a-z]/, (letter) => letter.toUpperCase());
  return /[.:?]$/.test(whole) ? whole : `${whole}.`;
}

/** Escapes a text and wraps it, so that the generated source can be compared line by line. */
export function textLines(text: string): string[] {
  return wrapText(text.split(/\s+/).map(escapeText).join(' '), LINE_WIDTH);
}

/** Escapes text for roff: backslashes are literal, hyphens can be copied, and no line is taken for a request. */
function escapeText(text: string): string {
  const safe = text.replaceAll('\\', '\\e').replaceAll('-', '\\-').replaceAll(/\s+/g, ' ');
  return /^[.']/.test(safe) ? `\\&${safe}` : safe;
}

/** Quotes text as one argument of a macro. */
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
  'You log in at the portal once for each appliance, through a link. The hub stores this login as a grant. From then on it refreshes the grant automatically, and issues access tokens on the home network to any appliance that authenticates. To appliances the hub is a standard OAuth authorization server.',
  'All commands except serve, emulator, demo, doctor, portals --catalogue, completion and help need a running hub. They connect to its control socket: run them with sudo, as the user of the hub, or as a member of the group latchkey-admin, if the machine has that group.',
  'Results are written to standard output, and everything else to standard error. With --json each result is one line of JSON.',
];

const EXIT_STATUS: readonly ManPageEntry[] = [
  { term: '0', text: 'done' },
  { term: '1', text: 'failed: one line on standard error says what is wrong, where, and what to do next' },
  { term: '2', text: 'wrong usage' },
  { term: '3', text: 'status: printed successfully, but it shows an error that somebody must fix' },
  {
    term: '78',
    text: 'serve, under systemd or in the container image: a permanent error, so systemd does not restart it; fix what the log says, then start it again',
  },
  { term: '130', text: 'ended by Ctrl-C' },
];

const ENVIRONMENT: readonly ManPageEntry[] = [
  {
    term: 'LATCHKEY_CONFIG',
    text: 'the configuration, if --config is not given; of several paths with colons between them, the first that exists',
  },
  {
    term: 'LATCHKEY_SECTION_KEY',
    text: 'overrides one key of the configuration: LATCHKEY_LAN_HTTPS_PORT is https_port of [lan]',
  },
  { term: 'LATCHKEY_DEBUG', text: 'if it is 1, an error is followed by its stack trace and those of its causes' },
  { term: 'LATCHKEY_PROGRAM', text: 'the name of this program in messages, if it is not started as latchkey' },
  { term: 'NO_COLOR', text: 'if it is set, output has no colours' },
  { term: 'TERM', text: 'if it is dumb, output is never redrawn in place' },
  {
    term: 'STATE_DIRECTORY, RUNTIME_DIRECTORY, CREDENTIALS_DIRECTORY',
    text: 'the directories of the state, the control socket and the credentials, as systemd sets them for a service',
  },
  {
    term: 'XDG_STATE_HOME',
    text: 'the directory for the state and the control socket of a hub that a user starts (default: ~/.local/state)',
  },
];

const FILES: readonly ManPageEntry[] = [
  { term: '/etc/latchkey/latchkey.toml', text: 'the configuration' },
  { term: '/etc/latchkey/credentials/', text: "the service's credentials, such as the portals' client secrets" },
  { term: '/var/lib/latchkey/', text: 'the state: the store, its key, the CA' },
  { term: '/run/latchkey/control.sock', text: 'the control socket of the running hub' },
  { term: '/usr/share/doc/latchkey/examples/latchkey.toml', text: 'every key of the configuration, with its default' },
];

const SEE_ALSO = 'latchkey.toml(5), /usr/share/doc/latchkey/README.md, systemctl(1), journalctl(1)';
