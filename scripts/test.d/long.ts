// The long tests take too long for every run of the suite. Each has its own command.
import { execFileSync, spawnSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { lastRun } from './last-run.ts';

const root = join(import.meta.dirname, '../..');

/** A test or benchmark that takes too long for every run. */
interface LongForm {
  readonly name: string;
  /** For a shell in the checkout's root. */
  readonly command: string;
  readonly shows: string;
}

/** Long tests that are programs of their own, not test files with more rows. */
const PROGRAMS: readonly LongForm[] = [
  { name: 'chaos', command: './scripts/chaos', shows: 'no experiment makes the hub lose a grant' },
  {
    name: 'fuzz-hub',
    command: './scripts/fuzz --target hub',
    shows: 'a million mutated requests find no error in the hub',
  },
  {
    name: 'fuzz-emulator',
    command: './scripts/fuzz',
    shows: 'a million mutated requests find no error in the emulator',
  },
  { name: 'bench', command: './scripts/bench', shows: 'speed and resource use, for docs/benchmarks.md' },
];

/** Test files whose long forms have their own name. `files` is a part of their paths. */
const NAMED = [
  {
    name: 'bench-check',
    files: 'project/bench',
    shows: 'every suite of ./scripts/bench completes and gives figures',
  },
  {
    name: 'arm64',
    files: 'release/arm64/',
    shows: 'a hub of the arm64 package runs on an emulated processor',
  },
];

/** All long tests: the programs, and the test files that select rows with test/support/long.ts. */
function longForms(): readonly LongForm[] {
  const files = globSync('test/**/*.test.ts', { cwd: root })
    .filter((file) => /from '[./]+\/support\/long\.ts'/.test(readFileSync(join(root, file), 'utf8')))
    .map((file) => file.slice('test/'.length, -'.test.ts'.length))
    .sort();
  const others = files.filter((file) => !NAMED.some((named) => file.startsWith(named.files)));
  const rest = {
    name: 'tests',
    files: others.join(' '),
    shows: 'all rows of the test tables of which the suite runs only some',
  };
  const named = others.length === 0 ? NAMED : [...NAMED, rest];
  return [
    ...PROGRAMS,
    ...named.map(({ name, files, shows }) => ({
      name,
      command: `LATCHKEY_TEST_LONG=1 ./scripts/test ${files}`,
      shows,
    })),
  ];
}

/** Runs the long tests with these names, all if there are none, one after another. @returns the exit status */
export function runLongForms(names: readonly string[]): number {
  const all = longForms();
  const unknown = names.find((wanted) => !all.some(({ name }) => name === wanted));
  if (unknown !== undefined) {
    console.error(`scripts/test --long: found ${unknown}; allowed are ${all.map(({ name }) => name).join(', ')}`);
    console.log('0 passed, 1 failed, 0 skipped');
    return 2;
  }
  const leftOut = execFileSync(join(root, 'scripts/test-packages'), ['--all'], { encoding: 'utf8' });
  if (leftOut !== '') console.log(`Not installed by the set-up:\n${leftOut}`);
  const chosen = names.length === 0 ? all : all.filter(({ name }) => names.includes(name));
  const failed = chosen.filter(({ name, command }) => {
    console.log(`\n== ${name}: ${command}`);
    return spawnSync('bash', ['-c', command], { cwd: root, stdio: 'inherit' }).status !== 0;
  });
  for (const { name } of failed) console.log(`\nFailed: ${name}`);
  console.log(`\n${chosen.length - failed.length} passed, ${failed.length} failed, 0 skipped`);
  return failed.length > 0 ? 1 : 0;
}

/** A text about the last run of `scripts/test --all` in a checkout. */
export function describeLastRun(checkout: string): string {
  const run = lastRun(checkout);
  const last =
    run === null
      ? 'never run to its end in this checkout, on a commit without changes'
      : `${run.date}, on ${run.commit.slice(0, 7)}: ${run.result}; ${minutes(run.wall)}, ${minutes(run.cpu)} of processor time`;
  return ['all', '    everything that a release needs', '    ./scripts/test --all', `    ${last}`].join('\n');
}

function minutes(seconds: number): string {
  return `${(seconds / 60).toFixed(1)} min`;
}

/** A text that lists each long test with what it shows and its command. */
export function listLongForms(): string {
  return longForms()
    .map(({ name, command, shows }) => [name, `    ${shows}`, `    ${command}`].join('\n'))
    .join('\n');
}
