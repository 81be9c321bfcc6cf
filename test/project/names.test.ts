import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from './checkout.ts';

const EXPORT = /^export (?:declare )?(?:abstract )?(?:async )?(const|function|class|interface|type) (\w+)/gm;
const MEMBER = /^ +(?:readonly (\w+)\??:|(?:async |get |static )*#?(\w+)\([^)]*\)(?:: [^;]+)? \{$)/gm;

/** Words that docs/glossary.md and the standards of the field replace, with the term to use instead. */
const RETIRED: ReadonlyMap<string, string> = new Map([
  ['Anew', 'again'],
  ['Book', '…Recorder or …Store'],
  ['Carried', 'delivered'],
  ['Desk', 'Administration'],
  ['Distrusted', 'accessTokenRejectedAt'],
  ['Door', 'InterfaceSockets'],
  ['Doors', 'InterfaceSockets'],
  ['Giver', 'Issuer (RFC 8414)'],
  ['Household', 'DemoEnvironment or Fake…'],
  ['Judge', 'derive… or …Audit'],
  ['Least', 'MIN_…'],
  ['Mood', 'Severity'],
  ['Most', 'MAX_…'],
  ['Neighbourhood', 'Segment'],
  ['Pace', 'Throttle'],
  ['Places', '…Limiter or …Quota'],
  ['Presence', 'Advertiser'],
  ['Rests', 'Backoff'],
  ['Round', 'PairingBatch'],
  ['Setback', 'RefreshFailure'],
  ['Standing', 'RefreshState'],
  ['Street', 'Fleet'],
  ['Struck', 'FaultMatch'],
  ['Surroundings', 'Environment'],
  ['Switchboard', 'Settings'],
  ['Switches', 'Settings'],
  ['Tally', 'Counters'],
  ['Told', 'reported, logged or notified'],
  ['Troubles', 'LogDeduplicator'],
  ['Turns', 'ConcurrencyLimiter'],
  ['Unrest', 'topology change'],
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

function membersBelow(folder: string): Pick<ExportedName, 'file' | 'name'>[] {
  return globSync(`${folder}/**/*.ts`, { cwd: root }).flatMap((file) =>
    [...readFileSync(join(root, file), 'utf8').matchAll(MEMBER)].map(([, property = '', method = '']) => ({
      file,
      name: property || method,
    })),
  );
}

/** Splits `MAX_WAIT_MS`, `maxWait` and `MaxWait` into words that begin with a capital. */
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

test('no exported name and no member contains a retired word', () => {
  const names = [...['src', 'test', 'scripts'].flatMap(exportsBelow), ...membersBelow('src')];
  expect(names.length).toBeGreaterThan(3000);
  const odd = names.flatMap(({ file, name }) => {
    const word = wordsOf(name).find((part) => RETIRED.has(part));
    return word === undefined ? [] : [`${file}: ${name}: for "${word}" say ${RETIRED.get(word)}`];
  });
  expect(odd).toEqual([]);
});

const TEST_TITLE = /^ *(?:it|test)(?:\.\w+)*\((?:\n *)?(['"`])(.+?)\1,/gm;
/** A title that begins like this continues the title of its describe block and is not a sentence of its own. */
const NO_SUBJECT = /^(?:is|are|was|has|have|does|do|can|may|says|shows|gives|takes|goes|and|or|but|not|so) /;

test('every test title is a sentence with a subject', () => {
  const files = globSync('test/**/*.test.ts', { cwd: root, exclude: ['**/node_modules/**'] });
  const titles = files.flatMap((file) =>
    [...readFileSync(join(root, file), 'utf8').matchAll(TEST_TITLE)].map(([, , title = '']) => ({ file, title })),
  );
  expect(titles.length).toBeGreaterThan(1000);
  expect(titles.filter(({ title }) => NO_SUBJECT.test(title))).toEqual([]);
});
