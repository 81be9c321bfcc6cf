// The long tests take too long for every run of the suite. Each has its own command; test/long-runs.json records its
// last run.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { lastRun } from './last-run.ts';

const root = join(import.meta.dirname, '../..');
const RECORD = join(root, 'test/long-runs.json');

/** A test or benchmark that takes too long for every run. */
export interface LongForm {
  readonly name: string;
  /** For a shell in the checkout's root. */
  readonly command: string;
  readonly shows: string;
}

/** The last run of a long test. */
interface LongRun {
  /** Abbreviated, with `+` if the checkout had uncommitted changes. */
  readonly commit: string;
  /** YYYY-MM-DD. */
  readonly date: string;
  /** `N passed, N failed, N skipped`: counts tests if the command counts them, else the command itself. */
  readonly result: string;
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
    shows: 'the package installs, runs, updates and purges in an emulated arm64 Debian',
  },
];

const FAILED: Counts = { passed: 0, failed: 1, skipped: 0 };

/** All long tests: the programs, and the test files that select rows with test/support/long.ts. */
export function longForms(): readonly LongForm[] {
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

/** Runs the long tests with these names (all if there are none) and prints the results. @returns the exit status */
export async function runSelected(names: readonly string[]): Promise<number> {
  const all = longForms();
  const unknown = names.find((wanted) => !all.some(({ name }) => name === wanted));
  if (unknown !== undefined) {
    console.error(`scripts/test --long: found ${unknown}; allowed are ${all.map(({ name }) => name).join(', ')}`);
    console.log(inLastLine(FAILED));
    return 2;
  }
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stop.abort());
  const leftOut = execFileSync(join(root, 'scripts/test-packages'), ['--all'], { encoding: 'utf8' });
  if (leftOut !== '') console.log(`Not installed by the set-up:\n${leftOut}`);
  const chosen = names.length === 0 ? all : all.filter(({ name }) => names.includes(name));
  const counts = await runLongForms(chosen, { stop: stop.signal });
  console.log(`\n${inLastLine(counts)}`);
  return counts.failed > 0 ? 1 : 0;
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

/** A text that lists each long test with what it shows, its command and its last run. */
export function listLongForms(forms = longForms(), runs = read(RECORD)): string {
  return forms
    .map(({ name, command, shows }) => {
      const run = runs[name];
      const last = run === undefined ? 'never run' : `${run.date}, on ${run.commit}: ${run.result}`;
      return [name, `    ${shows}`, `    ${command}`, `    ${last}`].join('\n');
    })
    .join('\n');
}

/** The counts in the last line of a test run. */
interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** The last line of a test run. */
function inLastLine({ passed, failed, skipped }: Counts): string {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`;
}

/**
 * Runs long tests one after another, and records each result unless the run was stopped.
 * @param record the file with the last runs
 */
export async function runLongForms(
  forms: readonly LongForm[],
  { record = RECORD, stop = new AbortController().signal }: { record?: string; stop?: AbortSignal } = {},
): Promise<Counts> {
  const commit = commitHere();
  const sum = { passed: 0, failed: 0, skipped: 0 };
  const lines: string[] = [];
  for (const form of forms) {
    console.log(`\n== ${form.name}: ${form.command}`);
    const counts = stop.aborted ? FAILED : await run(form, stop);
    for (const key of ['passed', 'failed', 'skipped'] as const) sum[key] += counts[key];
    const result = stop.aborted ? 'stopped' : inLastLine(counts);
    lines.push(`  ${form.name}: ${result}`);
    if (stop.aborted) continue;
    const date = new Date().toISOString().slice(0, 10);
    writeFileSync(record, `${JSON.stringify({ ...read(record), [form.name]: { commit, date, result } }, null, 2)}\n`);
  }
  console.log(['', 'The long tests:', ...lines].join('\n'));
  return sum;
}

/** The counts in the command's last line. If it has none, the command itself counts as passed or failed. */
async function run({ command }: LongForm, stop: AbortSignal): Promise<Counts> {
  const child = spawn('bash', ['-c', command], { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] });
  const end = () => child.kill('SIGTERM');
  stop.addEventListener('abort', end);
  let tail = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    process.stdout.write(text);
    tail = (tail + text).slice(-1000);
  });
  const [status] = await once(child, 'close');
  stop.removeEventListener('abort', end);
  const counted = /(?:^|\n)(\d+) passed, (\d+) failed, (\d+) skipped\n$/.exec(tail);
  if (counted === null) return status === 0 ? { passed: 1, failed: 0, skipped: 0 } : FAILED;
  const [passed = 0, failed = 0, skipped = 0] = counted.slice(1).map(Number);
  return { passed, failed: status === 0 ? failed : Math.max(failed, 1), skipped };
}

function commitHere(): string {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
  try {
    const isChanged = git('status', '--porcelain', '--', '.', ':!test/long-runs.json') !== '';
    return `${git('rev-parse', '--short', 'HEAD')}${isChanged ? '+' : ''}`;
  } catch {
    return 'unknown';
  }
}

function read(record: string): Readonly<Record<string, LongRun>> {
  return JSON.parse(readFileSync(record, 'utf8'));
}
