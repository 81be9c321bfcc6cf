import { readFile } from 'node:fs/promises';
import { type Command, InvalidArgumentError, type Option } from 'commander';
import { didYouMean } from '../../system/did-you-mean.ts';

/** Flags that say how to run the command, not what with. */
const COMMAND_LINE_ONLY = ['options', 'json', 'help'];

/**
 * Sets a command's options from a TOML file. Its keys are the flags' names with underscores, its values what a flag takes
 * (seconds may be numbers), true or false where a flag takes none, and a list where a flag may be given again. A flag on
 * the command line wins. Ends the program as wrong usage, with one line that names file and key, where something is no
 * good.
 */
export async function readOptionsFile(command: Command, file: string): Promise<void> {
  const options = new Map(
    command.options
      .map((option) => [optionKey(option), option] as const)
      .filter(([key]) => !COMMAND_LINE_ONLY.includes(key)),
  );
  const refuse = (text: string) => command.error(`error: --options ${file}: ${text}`);
  for (const [key, value] of Object.entries(await readToml(file, refuse))) {
    const option = options.get(key);
    if (option === undefined) {
      const keys = [...options.keys()];
      return refuse(
        `${key.slice(0, 100)}: found an unknown key${didYouMean(key, keys)}; allowed are ${keys.join(', ')}`,
      );
    }
    const read = parseValue(option, value);
    if ('problem' in read) return refuse(`${key}: found ${describeValue(key, value)}; ${read.problem}`);
    if (command.getOptionValueSource(option.attributeName()) === 'cli') continue;
    command.setOptionValueWithSource(option.attributeName(), read.value, 'config');
  }
}

/** A flag's key: `--no-relay-refusal` is `relay_refusal`. */
function optionKey(option: Option): string {
  return option.attributeName().replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

async function readToml(file: string, refuse: (text: string) => never): Promise<object> {
  const { parse, TomlError } = await import('smol-toml');
  try {
    return parse(await readFile(file, 'utf8'));
  } catch (error) {
    if (error instanceof TomlError) return refuse(`line ${error.line} is no TOML`);
    return refuse(`can't be read (${error instanceof Error && 'code' in error ? error.code : 'unknown reason'})`);
  }
}

/** What the flag makes of a value of the file. */
function parseValue(option: Option, value: unknown): { readonly value: unknown } | { readonly problem: string } {
  if (option.isBoolean() || option.negate) {
    return typeof value === 'boolean' ? { value } : { problem: 'allowed is true or false' };
  }
  const texts: unknown[] = Array.isArray(value) ? value : [value];
  const repeats = REPEATABLE_KEYS.has(optionKey(option));
  let read: unknown;
  for (const text of texts) {
    if ((typeof text !== 'string' && typeof text !== 'number') || Array.isArray(value) !== repeats) {
      return { problem: repeats ? 'allowed is a list of texts' : 'allowed is a text or a number' };
    }
    try {
      read = option.parseArg === undefined ? String(text) : option.parseArg(String(text), read);
    } catch (error) {
      if (!(error instanceof InvalidArgumentError)) throw error;
      return { problem: error.message.replace(/^Allowed/, 'allowed').replace(/\.$/, '') };
    }
  }
  return { value: read };
}

/** The keys of flags that may be given again. */
const REPEATABLE_KEYS: ReadonlySet<string> = new Set(['allowed_host', 'client', 'user', 'fault']);

/** A value as it was found. The keys that may be given again hold secrets. */
function describeValue(key: string, value: unknown): string {
  if (REPEATABLE_KEYS.has(key)) return Array.isArray(value) ? 'a list' : `a ${typeof value}`;
  return (JSON.stringify(value) ?? typeof value).slice(0, 100);
}
