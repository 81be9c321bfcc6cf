import { readFile } from 'node:fs/promises';
import { type Command, InvalidArgumentError, type Option } from 'commander';
import { didYouMean } from '../../system/nearest-name.ts';

/** Flags that say how to run the command, not what with. */
const FLAGS_ONLY = ['options', 'json', 'help'];

/**
 * Sets a command's options from a TOML file. Its keys are the flags' names with underscores, its values what a flag takes
 * (seconds may be numbers), true or false where a flag takes none, and a list where a flag may be given again. A flag on
 * the command line wins. Ends the program as wrong usage, with one line that names file and key, where something is no
 * good.
 */
export async function readOptionsFile(command: Command, file: string): Promise<void> {
  const options = new Map(
    command.options.map((option) => [keyOf(option), option] as const).filter(([key]) => !FLAGS_ONLY.includes(key)),
  );
  const refuse = (text: string) => command.error(`error: --options ${file}: ${text}`);
  for (const [key, value] of Object.entries(await read(file, refuse))) {
    const option = options.get(key);
    if (option === undefined) {
      const keys = [...options.keys()];
      return refuse(
        `${key.slice(0, 100)}: found an unknown key${didYouMean(key, keys)}; allowed are ${keys.join(', ')}`,
      );
    }
    const read = parsed(option, value);
    if ('problem' in read) return refuse(`${key}: found ${show(key, value)}; ${read.problem}`);
    if (command.getOptionValueSource(option.attributeName()) === 'cli') continue;
    command.setOptionValueWithSource(option.attributeName(), read.value, 'config');
  }
}

/** A flag's key: `--no-relay-refusal` is `relay_refusal`. */
function keyOf(option: Option): string {
  return option.attributeName().replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

async function read(file: string, refuse: (text: string) => never): Promise<object> {
  const { parse, TomlError } = await import('smol-toml');
  try {
    return parse(await readFile(file, 'utf8'));
  } catch (error) {
    if (error instanceof TomlError) return refuse(`line ${error.line} is no TOML`);
    return refuse(`can't be read (${error instanceof Error && 'code' in error ? error.code : 'unknown reason'})`);
  }
}

/** What the flag makes of a value of the file. */
function parsed(option: Option, value: unknown): { readonly value: unknown } | { readonly problem: string } {
  if (option.isBoolean() || option.negate) {
    return typeof value === 'boolean' ? { value } : { problem: 'allowed is true or false' };
  }
  const texts: unknown[] = Array.isArray(value) ? value : [value];
  const repeats = REPEATED.has(keyOf(option));
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
const REPEATED: ReadonlySet<string> = new Set(['allowed_host', 'client', 'user', 'fault']);

/** A value as it was found. The keys that may be given again hold secrets. */
function show(key: string, value: unknown): string {
  if (REPEATED.has(key)) return Array.isArray(value) ? 'a list' : `a ${typeof value}`;
  return (JSON.stringify(value) ?? typeof value).slice(0, 100);
}
