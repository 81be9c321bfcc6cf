import { parseArgs } from 'node:util';

/** What a fuzzer run is about. */
interface Options {
  readonly target: 'emulator' | 'hub';
  readonly requests: number;
  readonly seed: number;
  /** fast-check's path of a finding. */
  readonly path: string | undefined;
}

const ALLOWED =
  'allowed are --target emulator or hub, --requests N and --seed S, whole numbers, and --path P of a finding';

/**
 * The options of the command line. Without a seed, a random one is used.
 * @throws Error with one line that says what is wrong and what is allowed
 */
export function parseOptions(args: readonly string[]): Options {
  const { target = 'emulator', requests, seed, path } = parse(args);
  if (target !== 'emulator' && target !== 'hub') throw wrong(`--target: found ${JSON.stringify(target)}`);
  if (path !== undefined && !/^\d+(:\d+)*$/.test(path)) throw wrong(`--path: found ${JSON.stringify(path)}`);
  return {
    target,
    requests: whole('requests', requests, 1, 1e9) ?? 1_000_000,
    seed: whole('seed', seed, 0, 2 ** 31 - 1) ?? Math.floor(Math.random() * 2 ** 31),
    path,
  };
}

function parse(args: readonly string[]) {
  try {
    const text = { type: 'string' } as const;
    return parseArgs({ args: [...args], options: { target: text, requests: text, seed: text, path: text } }).values;
  } catch (error) {
    throw wrong(error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error));
  }
}

function whole(name: string, text: string | undefined, lowest: number, highest: number): number | null {
  if (text === undefined) return null;
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= lowest && value <= highest) return value;
  throw wrong(`--${name}: found ${JSON.stringify(text)}, allowed is ${lowest} to ${highest}`);
}

function wrong(what: string): Error {
  return new Error(`${what}; ${ALLOWED}`);
}
