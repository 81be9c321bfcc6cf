import { readFile } from 'node:fs/promises';
import { type Command, InvalidArgumentError, type Option } from 'commander';
import { didYouMean } from '../../system/did-you-mean.ts';

/** Flags that cannot be set in an options file: they control the command, not the emulator. */
const COMMAND_LINE_ONLY = ['options', 'json', 'help', 'version'];

/**
 * Sets a command's options from a TOML or JSON file. Its keys are the flags' names with underscores. Its values are what
 * a flag takes (seconds may be numbers), true or false for a flag without a value, and a list for a repeatable flag, whose
 * clients, users and faults may be tables. A flag on the command line takes precedence. If the file is invalid, the program ends as for wrong usage, with one line that
 * names file and key.
 */
export async function readOptionsFile(command: Command, file: string): Promise<void> {
  const options = new Map(
    command.options
      .map((option) => [optionKey(option), option] as const)
      .filter(([key]) => !COMMAND_LINE_ONLY.includes(key)),
  );
  const { parseClient, parseUser } = await import('../../emulator/index.ts');
  const tables: TableParsers = { client: parseClient, user: parseUser, fault: (table) => JSON.stringify(table) };
  const fail = (text: string) => command.error(`error: --options ${file}: ${text}`);
  for (const [key, value] of Object.entries(await readFileOptions(file, fail))) {
    const option = options.get(key);
    if (option === undefined) {
      const keys = [...options.keys()];
      const advice = didYouMean(key, keys) || `; allowed keys: ${keys.join(', ')}`;
      return fail(`${key.slice(0, 100)}: unknown key${advice}`);
    }
    const parsed = parseValue(option, value, tables);
    if ('problem' in parsed) return fail(`${key}: ${parsed.problem}`);
    if (command.getOptionValueSource(option.attributeName()) === 'cli') continue;
    command.setOptionValueWithSource(option.attributeName(), parsed.value, 'config');
  }
}

/** A flag's key: `--no-relay-refusal` is `relay_refusal`. */
function optionKey(option: Option): string {
  return option.attributeName().replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

async function readFileOptions(file: string, fail: (text: string) => never): Promise<object> {
  const { parse, TomlError } = await import('smol-toml');
  try {
    const text = await readFile(file, 'utf8');
    // No TOML begins like that.
    return text.trimStart().startsWith('{') ? JSON.parse(text) : parse(text);
  } catch (error) {
    if (error instanceof SyntaxError && !(error instanceof TomlError)) return fail('is not valid JSON');
    if (error instanceof TomlError) return fail(`line ${error.line} is not valid TOML`);
    return fail(`can't be read (${error instanceof Error && 'code' in error ? error.code : 'unknown reason'})`);
  }
}

/** Parses a table in the list of a repeatable flag. @throws Error with what is wrong */
type TableParsers = Readonly<Record<string, (table: object) => unknown>>;

/** Parses a value of the file as the flag parses its argument. */
function parseValue(
  option: Option,
  value: unknown,
  tables: TableParsers,
): { readonly value: unknown } | { readonly problem: string } {
  const key = optionKey(option);
  const invalid = (problem: string) => ({ problem: `${problem} (found ${describeValue(key, value)})` });
  if (option.isBoolean() || option.negate) {
    return typeof value === 'boolean' ? { value } : invalid('must be true or false');
  }
  const repeats = REPEATABLE_KEYS.has(key);
  if (Array.isArray(value) !== repeats) return invalid(repeats ? 'must be a list' : 'must be a string or a number');
  const entries: unknown[] = Array.isArray(value) ? value : [value];
  let parsed: unknown;
  for (const entry of entries) {
    const parseTable = tables[key];
    try {
      if (typeof entry === 'object' && entry !== null && parseTable !== undefined)
        parsed = [...(Array.isArray(parsed) ? parsed : []), parseTable(entry)];
      else if (typeof entry !== 'string' && typeof entry !== 'number')
        return invalid(repeats ? 'must be a list of strings' : 'must be a string or a number');
      else parsed = option.parseArg === undefined ? String(entry) : option.parseArg(String(entry), parsed);
    } catch (error) {
      if (!(error instanceof InvalidArgumentError)) return { problem: error instanceof Error ? error.message : '' };
      const message = error.message.replace(/^Allowed choices are/, 'must be one of').replace(/^Must/, 'must');
      return invalid(message.replace(/\.$/, ''));
    }
  }
  return { value: parsed };
}

/** The keys of repeatable flags. */
const REPEATABLE_KEYS: ReadonlySet<string> = new Set([
  'allowed_host',
  'issuer',
  'client',
  'redirect_uri',
  'user',
  'fault',
]);

/** Describes a value for an error message. Values of repeatable keys are not shown: they may be secrets. */
function describeValue(key: string, value: unknown): string {
  if (REPEATABLE_KEYS.has(key)) return Array.isArray(value) ? 'a list' : `a ${typeof value}`;
  return (JSON.stringify(value) ?? typeof value).slice(0, 100);
}
