// Runs the benchmark suites; scripts/bench.d/suite.ts defines what a suite is.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempDisposableSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { comparisonLines, measurementLines, type RunConditions, writeSuiteSection } from './bench.d/benchmarks-page.ts';
import { type BenchSubject, LATCHKEY, Measurements, type Suite } from './bench.d/suite.ts';
import { missingPrograms, SUITES } from './bench.d/suites.ts';

const root = join(import.meta.dirname, '..');

const { suites, quick, against } = options();
for (const { program, pack } of missingPrograms(suites)) {
  fail(`scripts/bench: ${program} is missing: install it ("apt-get install ${pack}"), or name other suites`);
}
using scratch = mkdtempDisposableSync(join(tmpdir(), 'latchkey-bench-'));
process.env['LATCHKEY_TEST_LOGS'] = join(scratch.path, 'logs');

const subjects: [BenchSubject, ...BenchSubject[]] = [{ name: LATCHKEY, root }];
if (against !== null) subjects.push(checkoutOf(against));
let notMeasured = 0;
for (const suite of suites) {
  progress(`${suite.name}: ${suite.title}`);
  const began = new Date();
  const loadBefore = loadavg()[0] ?? 0;
  const measured = new Measurements();
  await suite.measure({ quick, subjects, scratch: scratch.path, progress }, measured);
  const run = {
    ...{ suite: suite.name, began: began.toISOString(), ended: new Date().toISOString(), against, quick },
    ...{ load: [loadBefore, loadavg()[0] ?? 0] as const, measured: measured.all },
  };
  if (!quick) progress(`raw figures: ${saveRawFigures(run.suite, run.began, run)}`);
  notMeasured += report(suite, run, measured);
}
if (notMeasured > 0 && !quick) {
  fail(
    `scripts/bench: the machine was too busy to check ${notMeasured} of the targets: run this again when it is idle`,
    1,
  );
}

/**
 * Prints the results, and writes the page unless another revision was measured too.
 * @returns how many targets could not be checked
 */
function report(suite: Suite, run: RunConditions, measured: Measurements): number {
  if (against !== null) {
    console.log(comparisonLines(measured, subjects[1]?.name ?? ''));
    return 0;
  }
  const { targets, tables } = suite.report(measured);
  console.log(measurementLines(measured));
  for (const { text, measured, verdict } of targets) console.log(`${verdict.toUpperCase()}: ${text}: ${measured}`);
  if (!quick) writeSuiteSection(suite, run, { targets, tables });
  return targets.filter(({ verdict }) => verdict === 'not measured').length;
}

function saveRawFigures(suite: string, began: string, run: unknown): string {
  mkdirSync(join(root, '.cache/bench'), { recursive: true });
  const file = `.cache/bench/${suite}-${began.replaceAll(':', '-')}.json`;
  writeFileSync(join(root, file), `${JSON.stringify(run, null, 1)}\n`);
  return file;
}

function options(): { suites: readonly Suite[]; quick: boolean; against: string | null } {
  const known = SUITES.map(({ name }) => name);
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: { quick: { type: 'boolean', default: false }, against: { type: 'string' } },
    });
    const unknown = positionals.find((name) => !known.includes(name));
    if (unknown !== undefined) throw new Error(`found ${unknown}`);
    if (values.against === '') throw new Error('--against: found nothing');
    const suites = SUITES.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
    return { suites, quick: values.quick, against: values.against ?? null };
  } catch (error) {
    const [what] = (error instanceof Error ? error.message : String(error)).split('\n');
    return fail(`scripts/bench: ${what}; allowed are --quick, --against REVISION and ${known.join(', ')}`);
  }
}

/**
 * Unpacks another revision of this project below `.cache/bench/` and builds it; it stays there for later runs. The
 * suites of this checkout measure it.
 */
function checkoutOf(revision: string): BenchSubject {
  const named = spawnSync('git', ['rev-parse', '--verify', '--quiet', `${revision}^{commit}`], { cwd: root });
  if (named.status !== 0)
    fail(`scripts/bench: --against: found ${revision}; allowed is a revision that git knows here`);
  const commit = named.stdout.toString().trim();
  const folder = join(root, '.cache/bench/revisions', commit);
  if (!existsSync(join(folder, 'scripts/setup'))) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    const unpack = 'git archive "$1" | tar -x -C "$2"';
    const unpacked = spawnSync('bash', ['-o', 'pipefail', '-c', unpack, 'bash', commit, folder], { cwd: root });
    if (unpacked.status !== 0) fail(`scripts/bench: ${revision} could not be unpacked: ${unpacked.stderr}`);
  }
  const built = spawnSync(join(folder, 'scripts/setup'), { cwd: folder, stdio: ['ignore', 2, 2] });
  if (built.status !== 0) fail(`scripts/bench: ${revision} could not be built; see above`);
  return { name: `latchkey at ${commit.slice(0, 7)}`, root: folder };
}

function progress(line: string): void {
  console.error(`latchkey: ${line}`);
}

function fail(line: string, status = 2): never {
  console.error(line);
  process.exit(status);
}
