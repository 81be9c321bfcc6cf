import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from './checkout.ts';

const EXPORT = /^export (?:declare )?(?:abstract )?(?:async )?(const|function|class|interface|type) (\w+)/gm;

/** Words that names had before, and the field's term for each. */
const RETIRED: ReadonlyMap<string, string> = new Map([
  ['Desk', 'Administration'],
  ['Giver', 'Issuer (RFC 8414)'],
  ['Household', 'DemoEnvironment or Fake…'],
  ['Judge', 'derive… or …Audit'],
  ['Least', 'MIN_…'],
  ['Mood', 'Severity'],
  ['Most', 'MAX_…'],
  ['Neighbourhood', 'Segment'],
  ['Places', '…Limiter or …Quota'],
  ['Round', 'PairingBatch'],
  ['Setback', 'RefreshFailure'],
  ['Standing', 'RefreshState'],
  ['Surroundings', 'Environment'],
  ['Tally', 'Counters'],
  ['Troubles', 'LogDeduplicator'],
  ['Turns', 'ConcurrencyLimiter'],
  ['Wish', 'Request'],
]);

interface ExportedName {
  readonly file: string;
  readonly kind: string;
  readonly name: string;
}

function exportsBelow(folder: string): ExportedName[] {
  return globSync(`${folder}/**/*.ts`, { cwd: root, exclude: ['**/node_modules/**'] }).flatMap((file) =>
    [...readFileSync(join(root, file), 'utf8').matchAll(EXPORT)].map(([, kind = '', name = '']) => ({
      file,
      kind,
      name,
    })),
  );
}

/** `MAX_WAIT_MS`, `maxWait` and `MaxWait` in words that begin with a capital. */
function wordsOf(name: string): string[] {
  const camel = /_/.test(name) || name === name.toUpperCase() ? name.toLowerCase() : name;
  return camel
    .split(/_|(?<=[a-z0-9])(?=[A-Z])/)
    .filter((word) => word !== '')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1));
}

test('no two files of src export types with the same name', () => {
  const files = new Map<string, string[]>();
  for (const { kind, name, file } of exportsBelow('src'))
    if (kind !== 'const' && kind !== 'function') files.set(name, [...(files.get(name) ?? []), file]);
  expect(files.size).toBeGreaterThan(300);
  expect([...files].filter(([, all]) => all.length > 1)).toEqual([]);
});

test('no exported name contains a retired word', () => {
  const names = ['src', 'test', 'scripts'].flatMap(exportsBelow);
  expect(names.length).toBeGreaterThan(1500);
  const odd = names.flatMap(({ file, name }) => {
    const word = wordsOf(name).find((each) => RETIRED.has(each));
    return word === undefined ? [] : [`${file}: ${name}: for "${word}" say ${RETIRED.get(word)}`];
  });
  expect(odd).toEqual([]);
});
