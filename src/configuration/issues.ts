import type * as v from 'valibot';
import { Failure } from '../core/failure.ts';
import type { RawTable } from './environment.ts';
import { configurationSchema, keysIn } from './schema.ts';

/** Characters of a key that are shown: an unknown one may be of any length. */
const MAX_KEY_LENGTH = 200;

/** The key, and what is wrong there. The value of an unknown key is not shown: it may be a secret in the wrong place. */
export function describe(issue: v.BaseIssue<unknown>): [key: string, what: string] {
  const key = (issue.path ?? []).map((item) => String(item.key)).join('.') || 'the file';
  if (isUnknownKey(issue)) return [key, `is no key that Latchkey knows; allowed are ${keysOf(issue)}`];
  if (issue.received === 'undefined') return [key, 'is missing, and is needed'];
  // Arguments and addresses may hold secrets.
  if (key.startsWith('notify.')) return [key, `found something else; allowed is ${issue.message}`];
  return [
    key,
    `found ${/\.(client_id|secret_file|client_secret_file)$/.test(key) ? abbreviated(issue.input) : shown(issue)}; allowed is ${issue.message}`,
  ];
}

/** An unknown key is reported before a missing one: it may be that one, misspelt. */
export function isUnknownKey({ type, expected }: v.BaseIssue<unknown>): boolean {
  return type === 'strict_object' && expected === 'never';
}

/** The key of a list where a table belongs: valibot takes one for an object. */
export function listForTable(raw: RawTable): string | undefined {
  const named = ['portals', 'appliances'].flatMap((section) =>
    Object.entries(raw[section] ?? {}).map(([name, value]) => [`${section}.${name}`, value] as const),
  );
  const sections = Object.entries(raw).filter(([key]) => key in configurationSchema.entries);
  return [...sections, ...named].find(([, value]) => Array.isArray(value))?.[0];
}

/** What stood where a table belongs is not shown, and neither is a password in an address. */
function shown({ kind, expected, input }: v.BaseIssue<unknown>): string {
  if (kind === 'schema' && expected === 'Object') return `a ${typeof input}`;
  return `${JSON.stringify(input)}`.replace(/\/\/.*@/, '//…@').slice(0, 100);
}

/** Where the secret may stand by mistake no more is shown than is needed to find it. */
function abbreviated(input: unknown): string {
  if (typeof input === 'object') return Array.isArray(input) ? 'a list' : 'a table';
  const text = JSON.stringify(input);
  return text.length <= 12 ? text : `${text.slice(0, 5)}…" (${String(input).length} characters)`;
}

function keysOf({ path }: v.BaseIssue<unknown>): string {
  const [section] = path ?? [];
  return Object.keys(path?.length === 1 ? configurationSchema.entries : keysIn(String(section?.key))).join(', ');
}

/** What is wrong with a key, in one line. @param source the file, or the environment variable that overrides it */
export function invalidAt(source: string, key: string, what: string): Failure {
  return new Failure('config_invalid', `${source}: ${key.slice(0, MAX_KEY_LENGTH)}: ${what}`);
}
