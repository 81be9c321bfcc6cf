// Runs every check and test one after the other, whatever fails, and ends with what came of them all.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { conclusion, type Summary, total } from './test-summary.ts';

const root = join(import.meta.dirname, '..');
const filters = process.argv.slice(2);

const checks: readonly (readonly [name: string, command: readonly string[]])[] = [
  ['build', ['scripts/setup']],
  ['types of the sources', ['node_modules/.bin/tsc', '--noEmit']],
  ['types of the tests', ['node_modules/.bin/tsc', '-p', 'test/tsconfig.json']],
  ['types of the scripts', ['node_modules/.bin/tsc', '-p', 'scripts/tsconfig.json']],
  ['lint, format and layers', ['node_modules/.bin/biome', 'check', '--error-on-warnings']],
  ['unused code', ['node_modules/.bin/knip', '--treat-config-hints-as-errors']],
  [
    'code and packages that only tests use',
    ['node_modules/.bin/knip', '--production', '--files', '--dependencies', '--treat-config-hints-as-errors'],
  ],
];

let running: ChildProcess | null = null;
let stopped: NodeJS.Signals | null = null;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    stopped = signal;
    running?.kill(signal);
  });
}

// The secrets lie beside the logs and not among them: the logs are searched for them in the end.
const folder = mkdtempSync(join(tmpdir(), 'latchkey-test-'));
mkdirSync(join(folder, 'logs'));
const env = {
  ...process.env,
  LATCHKEY_TEST_LOGS: join(folder, 'logs'),
  ...(filters.length > 0 && { LATCHKEY_TEST_FILTERED: '1' }),
};

const summaries: Summary[] = [];
for (const [name, command] of checks) summaries.push(await check(name, command));
summaries.push(await tests('test/vitest.config.ts', filters));
summaries.push(await tests('test/after/vitest.config.ts', []));
const summary = total(summaries);

const failed = summary.failed.length > 0;
rmSync(failed ? join(folder, 'secrets') : folder, { recursive: true, force: true });
const leftOut = (process.env['LATCHKEY_TEST_LEFT_OUT'] ?? '').split('\n').filter((line) => line !== '');
if (failed) console.log(`\nThe logs of what the tests started: ${env.LATCHKEY_TEST_LOGS}`);
console.log(conclusion(summary, leftOut));
process.exitCode = stopped !== null ? 128 + constants.signals[stopped] : failed ? 1 : 0;

async function check(name: string, command: readonly string[]): Promise<Summary> {
  const ended = await run(name, command, env);
  return ended === null ? { passed: 1, failed: [], skipped: [] } : failure(name, ended);
}

/** Runs vitest. A run that ends badly and names no failure of its own, or that finds no tests, has failed as such. */
async function tests(config: string, only: readonly string[]): Promise<Summary> {
  const report = join(folder, `${config.replaceAll('/', '-')}.json`);
  const vitest = ['node_modules/.bin/vitest', 'run', '--config', config, '--reporter=default'];
  const command = [...vitest, `--reporter=${join(root, 'scripts/test-reporter.ts')}`, ...only];
  const ended = await run(config, command, { ...env, LATCHKEY_TEST_REPORT: report });
  let summary: Summary;
  try {
    summary = JSON.parse(readFileSync(report, 'utf8')) as Summary;
  } catch {
    return failure(config, `${ended ?? 'ended'} and reported nothing`);
  }
  if (summary.failed.length > 0) return summary;
  if (ended !== null) return total([summary, failure(config, ended)]);
  if (summary.passed + summary.skipped.length === 0) return failure(config, 'there are no tests');
  return summary;
}

function failure(name: string, reason: string): Summary {
  return { passed: 0, failed: [{ name, reason }], skipped: [] };
}

/** Runs a command of the checkout; null where it succeeds, else how it ended. */
async function run(name: string, command: readonly string[], env: NodeJS.ProcessEnv): Promise<string | null> {
  if (stopped !== null) return `not run: stopped by ${stopped}`;
  console.log(`\n== ${name}`);
  const [file = '', ...args] = command;
  const child = spawn(join(root, file), args, { cwd: root, env, stdio: ['ignore', 'inherit', 'inherit'] });
  running = child;
  return await new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (status, signal) => resolve(status === 0 ? null : `ended with ${signal ?? `status ${status}`}`));
  });
}
