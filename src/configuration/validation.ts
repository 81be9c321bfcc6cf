import * as v from 'valibot';
import { Failure } from '../core/failure.ts';
import { didYouMean } from '../system/did-you-mean.ts';
import { isTable, type RawTable } from './environment-overrides.ts';
import { configurationSchema, sectionEntries } from './schema.ts';

/** The most characters of a key in a message: an unknown key may have any length. */
const MAX_KEY_LENGTH = 200;

/** The valid part of a configuration, and its problems. */
interface ValidationResult {
  /** The valid keys, and defaults for the others. */
  readonly usable: v.InferOutput<typeof configurationSchema>;
  /** The problem of each key that was left out. If its table requires that key, the table was left out with it. */
  readonly problems: ReadonlyMap<string, string>;
}

/** Validates a configuration; removes invalid keys until the rest is valid. */
export function validateConfiguration(raw: RawTable): ValidationResult {
  const problems = new Map<string, string>();
  for (let rest = raw; ; ) {
    const list = findListInsteadOfTable(rest);
    const parsed = v.safeParse(configurationSchema, rest);
    if (list === undefined && parsed.success) return { usable: parsed.output, problems };
    const issues = [...(parsed.issues ?? [])].sort((a, b) => Number(isUnknownKey(b)) - Number(isUnknownKey(a)));
    const found =
      list === undefined
        ? issues.map((issue) => ({ path: issuePath(issue), problem: describeIssue(issue) }))
        : [{ path: list, problem: [list.join('.'), 'must be a table (found a list)'] as const }];
    const removed = new Set<string>();
    for (const { path, problem } of found) {
      const [key, text] = problem;
      if (removed.has(key)) continue;
      removed.add(key);
      rest = omitPath(rest, path) ?? {};
      // A required key that was removed is reported as missing in the next round; its first problem stays.
      if (!problems.has(key)) problems.set(key, text);
    }
  }
}

/**
 * A table without the value at `path`; null if that key is missing, because the table requires it and must go as a
 * whole.
 */
function omitPath(table: RawTable, [key = '', ...deeper]: readonly string[]): RawTable | null {
  if (!Object.hasOwn(table, key)) return deeper.length === 0 ? null : table;
  const entries = Object.entries(table).flatMap(([name, value]): [string, unknown][] => {
    if (name !== key) return [[name, value]];
    const remaining = deeper.length > 0 && isTable(value) ? omitPath(value, deeper) : null;
    return remaining === null ? [] : [[name, remaining]];
  });
  return Object.fromEntries(entries);
}

function issuePath({ path }: v.BaseIssue<unknown>): string[] {
  return (path ?? []).map((item) => String(item.key));
}

/** A key and its problem. The value of an unknown key is not shown: it may be a secret in the wrong place. */
function describeIssue(issue: v.BaseIssue<unknown>): [key: string, problem: string] {
  const path = issuePath(issue);
  const key = path.join('.') || 'the file';
  if (isUnknownKey(issue)) {
    const keys = allowedKeys(issue);
    const unknown = path.at(-1) ?? '';
    const ofFile = `${unknown}_file`;
    if (keys.includes(ofFile)) {
      const where = /^(ca|certificate|jwks)$/.test(unknown) ? '' : ', for the service one in /etc/latchkey/credentials';
      return [key, `unknown key (did you mean ${ofFile}? It names the file that contains it${where})`];
    }
    return [key, `unknown key${didYouMean(unknown, keys) || `; allowed keys: ${keys.join(', ')}`}`];
  }
  if (issue.received === 'undefined') return [key, 'is missing; add it'];
  const [section, , name] = path;
  // Arguments, webhook URLs and headers may contain secrets.
  if (section === 'notify' || (section === 'portals' && name === 'headers')) return [key, `must be ${issue.message}`];
  const found = /\.(client_id|secret_file|client_secret_file|client_key_file|postgres_file)$/.test(key)
    ? abbreviate(issue.input)
    : formatInput(issue);
  return [key, `must be ${issue.message} (found ${found})`];
}

/** An unknown key is reported before a missing key: it may be the missing one, misspelt. */
function isUnknownKey({ type, expected }: v.BaseIssue<unknown>): boolean {
  return type === 'strict_object' && expected === 'never';
}

/** The path of a list that should be a table: valibot accepts a list as an object. */
function findListInsteadOfTable(raw: RawTable): string[] | undefined {
  const named = ['portals', 'connections', 'appliances'].flatMap((section) =>
    Object.entries(raw[section] ?? {}).map(([name, value]) => ({ path: [section, name], value })),
  );
  const sections = Object.entries(raw)
    .filter(([key]) => key in configurationSchema.entries)
    .map(([key, value]) => ({ path: [key], value }));
  return [...sections, ...named].find(({ value }) => Array.isArray(value))?.path;
}

/** Formats a value for a message. A value in place of a table is not shown, and neither is a password in a URL. */
function formatInput({ kind, expected, input }: v.BaseIssue<unknown>): string {
  if (kind === 'schema' && expected === 'Object') return `a ${typeof input}`;
  return `${JSON.stringify(input)}`.replace(/\/\/.*@/, '//…@').slice(0, 100);
}

/** Shortens a value that may be a secret by mistake: it shows only what is needed to find it. */
function abbreviate(input: unknown): string {
  if (typeof input === 'object') return Array.isArray(input) ? 'a list' : 'a table';
  const text = JSON.stringify(input);
  return text.length <= 12 ? text : `${text.slice(0, 5)}…" (${String(input).length} characters)`;
}

function allowedKeys({ path }: v.BaseIssue<unknown>): string[] {
  const [section] = path ?? [];
  if (path?.length === 1) return Object.keys(configurationSchema.entries);
  const table = path?.[1]?.value;
  return Object.keys(sectionEntries(String(section?.key), isTable(table) ? table['type'] : undefined));
}

/** An invalid key of the configuration. The message is one line: `SOURCE: KEY: PROBLEM`. */
export class InvalidKeyFailure extends Failure {
  /** Such as `lan.https_port`. */
  readonly key: string;

  /**
   * @param source the file, or the environment variable that overrides it
   * @param shownAs the name of the key in that source
   */
  constructor(source: string, key: string, problem: string, shownAs = key) {
    super('config_invalid', `${source}: ${shownAs.slice(0, MAX_KEY_LENGTH)}: ${problem}`);
    this.key = key;
  }
}
