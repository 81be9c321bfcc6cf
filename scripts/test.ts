// Runs every check and test, even if some fail, and ends with a summary. The checks run in parallel with the tests,
// which mostly wait.
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { BUDGETS, budgetLine, cpuSecondsOfChildren, cpuSecondsOfRun, measureMachine } from './test.d/budget.ts';
import { cleanCommit, forgetLastRun, recordLastRun } from './test.d/last-run.ts';
import { clearLeftovers, endSession, rememberSession, removeFolder } from './test.d/leftovers.ts';
import { describeLastRun, listLongForms, runLongForms } from './test.d/long.ts';
import {
  addSummaries,
  readTestTimes,
  summaryText,
  type TestSummary,
  type TestTimes,
  timesTable,
} from './test.d/summary.ts';

const HELP = `Usage: scripts/test [--all] [--checks] [--update] [FILTER…]
       scripts/test --list
       scripts/test --long [NAME…]

Sets up what is missing, and runs the checks and the tests of the first tier, in minutes. A FILTER is a part of a test
file's path: only matching files run, of both tiers, within seconds, and of the checks only the types. A filtered run
installs no programs for the tests (scripts/test-packages --all installs them).

  --all     runs everything that a release needs: also test/release, with booted machines, containers, packages,
            foreign programs and short experiments; it installs the programs that these need
  --checks  with a FILTER: runs the other checks too (lint, format, layers, unused code)
  --update  lets the tests write the documents that are generated from the sources, instead of comparing them
  --list    shows the last run of --all, and lists the long tests, which never run by default: what each one shows,
            and its command
  --long    runs the long tests, all or those named, one after another
  --help    prints this text

The last line is always "N passed, N failed, N skipped".`;

const root = join(import.meta.dirname, '..');
const { values: options, positionals: filters } = argumentsOf();
if (options.help) {
  console.log(HELP);
  process.exit(0);
}
if (options.list) {
  console.log(`${describeLastRun(root)}\n\n${listLongForms()}`);
  process.exit(0);
}
if (options.long) process.exit(runLongForms(filters));

type Check = readonly [name: string, command: readonly string[]];

/** Some tests use the build. It also fails on type errors in the sources. */
const build: Check = ['build', ['scripts/setup']];

/** The compiler checks only what has changed since its last run. */
const types: Check = [
  'types of the tests and scripts',
  ['node_modules/.bin/tsc', '-p', 'scripts/tsconfig.json', '--singleThreaded'],
];

const otherChecks: readonly Check[] = [
  ['lint, format and layers', ['node_modules/.bin/biome', 'check', '--error-on-warnings']],
  ['unused code', ['node_modules/.bin/knip', '--treat-config-hints-as-errors']],
  [
    'code and packages that only tests use',
    ['node_modules/.bin/knip', '--production', '--files', '--dependencies', '--treat-config-hints-as-errors'],
  ],
];

const running = new Set<ChildProcess>();
/** The processor time of the children that have ended, in seconds. */
let cpuOfEnded = cpuSecondsOfChildren();
let stopped: NodeJS.Signals | null = null;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    stopped = signal;
    for (const child of running) child.kill(signal);
  });
}

// Whatever goes wrong: one line says so, nothing is left running, and the last line counts it.
process.on('uncaughtException', (error) => {
  for (const child of running) {
    child.kill('SIGKILL');
    if (child.pid !== undefined) endSession(child.pid);
  }
  console.error(`\nscripts/test: ${error.message}`);
  console.log('\n0 passed, 1 failed, 0 skipped');
  process.exit(1);
});

/** What the tests need for temporary files at the same time, in MB. */
const NEEDED_SPACE_MB = 500;
const { bavail, bsize } = statfsSync(tmpdir());
if (bavail * bsize < NEEDED_SPACE_MB * 2 ** 20) {
  throw new Error(
    `the disk is full: ${tmpdir()} has ${Math.floor((bavail * bsize) / 2 ** 20)} MB, and the tests need ${NEEDED_SPACE_MB} MB. Free some space, or set TMPDIR to another folder`,
  );
}

/** If more files failed, none is run again: the cause is probably not in the tests. */
const MAX_FILES_AGAIN = 10;
/** Tests run in parallel and slow one another down, by this factor at most. */
const PARALLEL_SLOWDOWN = 8;

const machine = measureMachine();
/** How many times slower than an idle machine this one may be. Deadlines that detect hangs are multiplied by it. */
const slowness = Math.ceil(PARALLEL_SLOWDOWN * Math.max(1, machine.wallFactor));
console.log(
  `A process starts in ${Math.round(machine.start * 1000)} ms here: deadlines that detect hangs are ${slowness} times those of an idle machine.`,
);

// The secrets are stored outside the logs folder, because the logs are searched for them in the end.
const folder = mkdtempSync(join(tmpdir(), 'latchkey-test-'));
mkdirSync(join(folder, 'logs'));
// It is deleted with everything that tests leave behind. Like /tmp it is open to other users, because some tests run as
// one.
const scratch = mkdtempSync(join(tmpdir(), 'lk-'));
chmodSync(scratch, 0o1777);
const env = {
  ...process.env,
  SUDO_UID: undefined, // else every command that is printed would begin with sudo
  TMPDIR: scratch,
  LATCHKEY_TEST_LOGS: join(folder, 'logs'),
  LATCHKEY_TEST_SLOWNESS: String(slowness),
  LATCHKEY_TEST_TIMES: join(folder, 'times'),
  ...(filters.length > 0 && { LATCHKEY_TEST_FILTERED: '1' }),
  ...((options.all || filters.length > 0) && { LATCHKEY_TEST_ALL: '1' }),
};
const times: TestTimes[] = [];

const session = join(root, '.cache/test-session.json');
clearLeftovers(session);
const commit = options.all && filters.length === 0 ? cleanCommit(root) : null;
if (commit !== null) forgetLastRun(root);
const built = await check(build);
const withChecks = filters.length === 0 || options.checks;
const parallel = await Promise.all([
  tests('test/vitest.config.ts', filters),
  runChecks(withChecks ? [types, ...otherChecks] : [types]),
]);
const summary = addSummaries([built, ...parallel, await testsAfter()]);
const failed = summary.failed.length > 0;
const timesOfFiles = readTestTimes(env.LATCHKEY_TEST_TIMES);
const alone = failed ? await runFailedAgain(summary) : [];
rmSync(session, { force: true });

for (const done of [failed ? join(folder, 'secrets') : folder, scratch]) removeFolder(done);
const skipped = (process.env['LATCHKEY_TEST_LEFT_OUT'] ?? '').split('\n').filter((line) => line !== '');
if (failed) console.log(`\nLogs of the processes that the tests started: ${env.LATCHKEY_TEST_LOGS}`);
console.log(`\n${timesTable([...times, ...timesOfFiles])}`);
if (alone.length > 0) console.log(`\n${alone.join('\n')}`);
if (!withChecks) {
  const skippedChecks = otherChecks.map(([name]) => name).join('; ');
  console.log(`\nChecks skipped because of the FILTER (${skippedChecks}): add --checks, or run ./scripts/test alone.`);
}
const used = { wall: Date.now() / 1000 - begunAt(), cpu: cpuSecondsOfRun() };
if (filters.length === 0) {
  console.log(`\n${budgetLine(used, BUDGETS[options.all ? 'all' : 'first'], machine.cpuFactor)}`);
}
const text = summaryText(summary, skipped);
console.log(text);
if (commit !== null && stopped === null) {
  const date = new Date().toISOString().slice(0, 10);
  recordLastRun(root, { commit, date, result: text.split('\n').at(-1) ?? '', ...used });
}
process.exitCode = stopped !== null ? 128 + constants.signals[stopped] : failed ? 1 : 0;

function argumentsOf() {
  const off = { type: 'boolean', default: false } as const;
  try {
    return parseArgs({
      options: { all: off, checks: off, update: off, list: off, long: off, help: off },
      allowPositionals: true,
    });
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n\n${HELP}\n\n0 passed, 1 failed, 0 skipped`);
    return process.exit(2);
  }
}

/** When the set-up began, in seconds since the epoch. */
function begunAt(): number {
  return Number(process.env['LATCHKEY_TEST_BEGUN'] ?? Date.now() / 1000 - process.uptime());
}

/**
 * Runs the test files with failures once more, one after another, and reports the results. The run has failed in any
 * case.
 */
async function runFailedAgain({ failed }: TestSummary): Promise<string[]> {
  const files = [...new Set(failed.flatMap(({ name }) => /^test\/\S+\.test\.ts/.exec(name)?.[0] ?? []))];
  if (files.length === 0) return [];
  const lines = [`To run only the failed files: ./scripts/test ${files.join(' ')}`];
  if (files.length > MAX_FILES_AGAIN || filters.length > 0 || stopped !== null) return lines;
  for (const file of files) {
    const again = await tests('test/vitest.config.ts', [file]);
    lines.push(`  ${file}: alone, ${again.passed} passed and ${again.failed.length} failed`);
  }
  return lines;
}

/** Runs the checks one after another. The output of each is printed in one piece when it has ended. */
async function runChecks(checks: readonly Check[]): Promise<TestSummary> {
  const summaries: TestSummary[] = [];
  for (const one of checks) summaries.push(await check(one));
  return addSummaries(summaries);
}

async function check([name, command]: Check): Promise<TestSummary> {
  const ended = await run(name, command, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  return ended === null ? { passed: 1, failed: [], skipped: [] } : failure(name, ended);
}

/** Runs vitest. A run that exits with an error without a failed test, or that finds no tests, counts as one failure. */
async function tests(config: string, only: readonly string[]): Promise<TestSummary> {
  const report = join(folder, `${config.replaceAll('/', '-')}.json`);
  const vitest = ['node_modules/.bin/vitest', 'run', '--config', config, '--reporter=default'];
  const update = options.update ? ['--update'] : [];
  const command = [...vitest, `--reporter=${join(root, 'scripts/test.d/reporter.ts')}`, ...only, ...update];
  const ended = await run(config, command, {
    env: { ...env, LATCHKEY_TEST_REPORT: report },
    stdio: ['ignore', 'inherit', 'inherit'],
    // In a session of its own, so that all processes of the tests can be found and ended, however the run ends.
    detached: true,
  });
  let summary: TestSummary;
  try {
    summary = JSON.parse(readFileSync(report, 'utf8')) as TestSummary;
  } catch {
    return failure(config, `${ended ?? 'ended'} and reported nothing`);
  }
  if (summary.failed.length > 0) return summary;
  if (ended !== null) return addSummaries([summary, failure(config, ended)]);
  if (summary.passed + summary.skipped.length === 0) return failure(config, 'there are no tests');
  return summary;
}

/**
 * Runs the tests that need the others' output. With a filter only the search for secrets runs, and only if there are
 * logs.
 */
async function testsAfter(): Promise<TestSummary> {
  if (filters.length > 0 && readdirSync(env.LATCHKEY_TEST_LOGS).length === 0) return addSummaries([]);
  return tests('test/after/vitest.config.ts', filters.length > 0 ? ['no-secret-in-logs'] : []);
}

function failure(name: string, reason: string): TestSummary {
  return { passed: 0, failed: [{ name, reason }], skipped: [] };
}

/** Runs a command of the checkout. @returns null if it succeeds, else how it ended */
async function run(name: string, command: readonly string[], options: SpawnOptions): Promise<string | null> {
  if (stopped !== null) return `not run: stopped by ${stopped}`;
  const [file = '', ...args] = command;
  const child = spawn(join(root, file), args, { cwd: root, ...options });
  const output: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (piece: Buffer) => output.push(piece));
  if (child.stdout === null) console.log(`\n== ${name}`);
  running.add(child);
  const begun = performance.now();
  const leader = options.detached === true ? child.pid : undefined;
  if (leader !== undefined) rememberSession(session, leader, [folder, scratch]);
  const ended = await new Promise<string | null>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('close', (status, signal) =>
      resolve(status === 0 ? null : `ended with ${signal ?? `status ${status}`}`),
    );
  });
  running.delete(child);
  // Processor time is added up when a child ends, so the increase is that of this child.
  const cpu = cpuSecondsOfChildren();
  times.push({ name, wall: (performance.now() - begun) / 1000, cpu: cpu - cpuOfEnded });
  cpuOfEnded = cpu;
  if (leader !== undefined) endSession(leader);
  if (child.stdout !== null) console.log(`\n== ${name}\n${Buffer.concat(output).toString().trimEnd()}`);
  return ended;
}
