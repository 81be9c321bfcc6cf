import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from './checkout.ts';

/** Reads a clock, sets a timer or gets random values directly, not through src/system. Socket timeouts are allowed. */
const ownTime =
  /\bDate\.now\b|\bnew Date\(\s*\)|\bDate\(\s*\)|\bMath\.random\b|(?<!\b(?:server|raw|socket)\.)\bset(?:Timeout|Interval|Immediate)\b|\bperformance\.now\b|\bhrtime\b|\bnode:timers\b/;

/** The line numbers, without comments, that take time or randomness directly from the machine. */
function linesWithOwnTime(source: string): number[] {
  const code = source.replaceAll(/\/\*[\s\S]*?\*\//g, (comment) => comment.replaceAll(/[^\n]/g, ' '));
  return code
    .split('\n')
    .flatMap((line, index) => (ownTime.test(line.replace(/(^|\s)\/\/.*$/, '')) ? [index + 1] : []));
}

/** The folders that may use the machine's time; src/page/browser uses the browser's. */
const TAKES_TIME = ['src/system/', 'src/page/browser/'];

test('only src/system reads clocks, timers and randomness', () => {
  const files = globSync('src/**/*.ts', { cwd: root }).filter(
    (file) => !TAKES_TIME.some((folder) => file.startsWith(folder)),
  );
  expect(files).not.toEqual([]);
  const found = files.flatMap((file) =>
    linesWithOwnTime(readFileSync(join(root, file), 'utf8')).map((line) => `${file}:${line}`),
  );
  expect(found).toEqual([]);
});

test.each([
  'const now = Date.now();',
  'const now = new Date();',
  'const chance = Math.random();',
  'const timer = setTimeout(run, 5);',
  'globalThis.setInterval(run, 5);',
  'setImmediate(run);',
  'const now = performance.now();',
  'const now = process.hrtime.bigint();',
  "import { setTimeout as sleep } from 'node:timers/promises';",
])('the check of clocks and randomness finds %s', (line) => {
  expect(linesWithOwnTime(`/*\n*/ ${line}\n// ${line}\n/** ${line} */\n`)).toEqual([2]);
});

test('the check of clocks and randomness permits a date that is made from a given time', () => {
  expect(linesWithOwnTime('new Date(instant.wall).toISOString();')).toEqual([]);
});
