import { readFile } from 'node:fs/promises';
import { type Command, InvalidArgumentError, type Option } from 'commander';
import { didYouMean } from '../../system/did-you-mean.ts';

/** Flags that cannot be set in an options file: they control the command, not the emulator. */
const COMMAND_LINE_ONLY = ['options', 'json', 'help'];

/**
 * Sets a command's options from a TOML file. Its keys are the flags' names with underscores. Its values are what a flag
 * takes (seconds may be numbers), true or false for a flag without a value, and a list for a repeatable flag. A flag on
 * the command line takes precedence. If the file is invalid, the program ends as for wrong usage, with one line that
 * names file and key.
 */
export async function readOptionsFile(command: Command, file: string): Promise<void> {
  const options = new Map(
    command.options
      .map((option) => [optionKey(option), option] as const)
      .filter(([key]) => !COMMAND_LINE_ONLY.includes(key)),
  );
  const fail = (text: string) => command.error(`error: --options ${file}: ${text}`);
  for (const [key, value] of Object.entries(await readToml(file, fail))) {
    const option = options.get(key);
    if (option === undefined) {
      const keys = [...options.keys()];
      return fail(`${key.slice(0, 100)}: unknown key${didYouMean(key, keys)}; allowed keys: ${keys.join(', ')}`);
    }
    const parsed = parseValue(option, value);
    if ('problem' in parsed) return fail(`${key}: ${parsed.problem} (found ${describeValue(key, value)})`);
    if (command.getOptionValueSource(option.attributeName()) === 'cli') continue;
    command.setOptionValueWithSource(option.attributeName(), parsed.value, 'config');
  }
}

/** A flag's key: `--no-relay-refusal` is `relay_refusal`. */
function optionKey(option: Option): string {
  return option.attributeName().replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

async function readToml(file: string, fail: (text: string) => never): Promise<object> {
  const { parse, TomlError } = await import('smol-toml');
  try {
    return parse(await readFile(file, 'utf8'));
  } catch (error) {
    if (error instanceof TomlError) return fail(`line ${error.line} is not valid TOML`);
    return fail(`can't be read (${error instanceof Error && 'code' in error ? error.code : 'unknown reason'})`);
  }
}

/** Parses a value of the file as the flag parses its argument. */
function parseValue(option: Option, value: unknown): { readonly value: unknown } | { readonly problem: string } {
  if (option.isBoolean() || option.negate) {
    return typeof value === 'boolean' ? { value } : { problem: 'must be true or false' };
  }
  const texts: unknown[] = Array.isArray(value) ? value : [value];
  const repeats = REPEATABLE_KEYS.has(optionKey(option));
  let parsed: unknown;
  for (const text of texts) {
    if ((typeof text !== 'string' && typeof text !== 'number') || Array.isArray(value) !== repeats) {
      return { problem: repeats ? 'must be a list of strings' : 'must be a string or a number' };
    }
    try {
      parsed = option.parseArg === undefined ? String(text) : option.parseArg(String(text), parsed);
    } catch (error) {
      if (!(error instanceof InvalidArgumentError)) throw error;
      const message = error.message.replace(/^Allowed choices are/, 'must be one of').replace(/^Must/, 'must');
      return { problem: message.replace(/\.$/, '') };
    }
  }
  return { value: parsed };
}

/** The keys of repeatable flags. */
const REPEATABLE_KEYS: ReadonlySet<string> = new Set(['allowed_host', 'client', 'user', 'fault']);

/** Describes a value for an error message. Values of repeatable keys are not shown: they may be secrets. */
function describeValue(key: string, value: unknown): string {
  if (REPEATABLE_KEYS.has(key)) return Array.isArray(value) ? 'a list' : `a ${typeof value}`;
  return (JSON.stringify(value) ?? typeof value).slice(0, 100);
}
