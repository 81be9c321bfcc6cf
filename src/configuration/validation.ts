import * as v from 'valibot';
import { Failure } from '../core/failure.ts';
import { didYouMean } from '../system/did-you-mean.ts';
import { isTable, type RawTable } from './environment-overrides.ts';
import { configurationSchema, sectionEntries } from './schema.ts';

/** Characters of a key that are shown: an unknown one may be of any length. */
const MAX_KEY_LENGTH = 200;

/** What of a configuration can be used. */
interface ValidationResult {
  /** With its defaults. */
  readonly usable: v.InferOutput<typeof configurationSchema>;
  /** What is wrong with the keys that were left out, each with its table where that needs it. */
  readonly problems: ReadonlyMap<string, string>;
}

/** Leaves out of a configuration what can't be used. */
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
        : [{ path: list, problem: [list.join('.'), 'found a list; allowed is a table'] as const }];
    const skipped = new Set<string>();
    for (const { path, problem } of found) {
      const [key, what] = problem;
      if (skipped.has(key)) continue;
      skipped.add(key);
      rest = omitPath(rest, path) ?? {};
      // A wrong key that its table needs is missing there by now.
      if (!problems.has(key)) problems.set(key, what);
    }
  }
}

/** A table without what is at `path`; null where its key is missing already, and the table needs it. */
function omitPath(table: RawTable, [key = '', ...deeper]: readonly string[]): RawTable | null {
  if (!Object.hasOwn(table, key)) return deeper.length === 0 ? null : table;
  const entries = Object.entries(table).flatMap(([name, value]): [string, unknown][] => {
    if (name !== key) return [[name, value]];
    const left = deeper.length > 0 && isTable(value) ? omitPath(value, deeper) : null;
    return left === null ? [] : [[name, left]];
  });
  return Object.fromEntries(entries);
}

function issuePath({ path }: v.BaseIssue<unknown>): string[] {
  return (path ?? []).map((item) => String(item.key));
}

/** The key, and what is wrong there. The value of an unknown key is not shown: it may be a secret in the wrong place. */
function describeIssue(issue: v.BaseIssue<unknown>): [key: string, what: string] {
  const path = issuePath(issue);
  const key = path.join('.') || 'the file';
  if (isUnknownKey(issue)) {
    const [section, , name] = path;
    if (section === 'portals' && name === 'replay' && path.length === 3) {
      return [key, `is now retry_lost_answer = ${issue.path?.at(-1)?.value === 'late' ? '"late"' : '"early"'}`];
    }
    const keys = allowedKeys(issue);
    const meant = didYouMean(path.at(-1) ?? '', keys);
    return [key, `is no key that Latchkey knows${meant}; allowed are ${keys.join(', ')}`];
  }
  if (issue.received === 'undefined') return [key, 'is missing, and is needed'];
  // Arguments and addresses may hold secrets.
  if (key.startsWith('notify.')) return [key, `found something else; allowed is ${issue.message}`];
  return [
    key,
    `found ${/\.(client_id|secret_file|client_secret_file)$/.test(key) ? abbreviate(issue.input) : formatInput(issue)}; allowed is ${issue.message}`,
  ];
}

/** An unknown key is reported before a missing one: it may be that one, misspelt. */
function isUnknownKey({ type, expected }: v.BaseIssue<unknown>): boolean {
  return type === 'strict_object' && expected === 'never';
}

/** The key of a list where a table belongs: valibot takes one for an object. */
function findListInsteadOfTable(raw: RawTable): string[] | undefined {
  const named = ['portals', 'appliances'].flatMap((section) =>
    Object.entries(raw[section] ?? {}).map(([name, value]) => ({ path: [section, name], value })),
  );
  const sections = Object.entries(raw)
    .filter(([key]) => key in configurationSchema.entries)
    .map(([key, value]) => ({ path: [key], value }));
  return [...sections, ...named].find(({ value }) => Array.isArray(value))?.path;
}

/** What stood where a table belongs is not shown, and neither is a password in an address. */
function formatInput({ kind, expected, input }: v.BaseIssue<unknown>): string {
  if (kind === 'schema' && expected === 'Object') return `a ${typeof input}`;
  return `${JSON.stringify(input)}`.replace(/\/\/.*@/, '//…@').slice(0, 100);
}

/** Where the secret may stand by mistake no more is shown than is needed to find it. */
function abbreviate(input: unknown): string {
  if (typeof input === 'object') return Array.isArray(input) ? 'a list' : 'a table';
  const text = JSON.stringify(input);
  return text.length <= 12 ? text : `${text.slice(0, 5)}…" (${String(input).length} characters)`;
}

function allowedKeys({ path }: v.BaseIssue<unknown>): string[] {
  const [section] = path ?? [];
  return Object.keys(path?.length === 1 ? configurationSchema.entries : sectionEntries(String(section?.key)));
}

/** A key of the configuration that can't be used, and what is wrong with it, in one line. */
export class InvalidKeyFailure extends Failure {
  /** Such as `lan.https_port`. */
  readonly key: string;

  /** @param source the file, or the environment variable that overrides it */
  constructor(source: string, key: string, what: string) {
    super('config_invalid', `${source}: ${key.slice(0, MAX_KEY_LENGTH)}: ${what}`);
    this.key = key;
  }
}
