// Tries to make the hub lose a grant, with the experiments of test/chaos, and reports the results.
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { findLeaks, readRememberedSecrets } from '../test/after/secret-search.ts';
import type { Experiment } from '../test/chaos/experiment.ts';
import { type ExperimentRun, resultsTable, summaryLine, updatePage, verdict } from './chaos.d/report.ts';
import { runExperiment } from './chaos.d/run.ts';

const root = join(import.meta.dirname, '..');
const folder = process.env['LATCHKEY_CHAOS_EXPERIMENTS'] ?? join(root, 'test/chaos');
const files = new Map(
  globSync('*.experiment.ts', { cwd: folder })
    .sort()
    .map((file) => [basename(file, '.experiment.ts'), join(folder, file)]),
);
const { short, minutes, seed, only, list, writeDocs } = options();
const chosen = [...files.keys()].filter((id) => only.length === 0 || only.includes(id));

if (list) {
  for (const id of chosen) {
    const { name, promise } = await load(id);
    console.log(`${id}: ${name}\n    ${promise}`);
  }
  process.exit();
}

const stop = new AbortController();
let signals = 0;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    signals += 1;
    if (signals === 1) console.log('\nstopping: the results so far follow; interrupt again to exit at once');
    stop.abort();
    if (signals > 1) process.exit(130);
  });
}

const began = new Date();
const run = join(
  process.env['LATCHKEY_CHAOS_RUNS'] ?? join(root, '.cache/chaos'),
  began.toISOString().replaceAll(':', '-').slice(0, 19),
);
mkdirSync(join(run, 'logs'), { recursive: true });
// A copy of the build: a run takes long, and the checkout may change meanwhile.
cpSync(join(root, 'dist'), join(run, 'dist'), { recursive: true });
cpSync(join(root, 'package.json'), join(run, 'package.json'));
const env = { ...process.env, LATCHKEY_TEST_LOGS: join(run, 'logs'), LATCHKEY_TEST_MAIN: join(run, 'dist/main.js') };

console.log(`seed ${seed}, the ${short ? 'short' : 'long'} form of ${chosen.join(', ')}`);
const results: ExperimentRun[] = [];
for (const id of chosen) {
  if (stop.signal.aborted) break;
  const from = performance.now();
  const clock = () => `${Math.floor((performance.now() - from) / 1000)} s`.padStart(6);
  const { name, promise } = await load(id).catch(() => ({ name: id, promise: '' }));
  console.log(`\n== ${id}: ${promise}`);
  const job = { file: files.get(id) ?? '', seed, long: !short, minutes };
  const outcome = await runExperiment(job, env, stop.signal, (line) => console.log(`${clock()}  ${line}`));
  results.push({ id, name, outcome, seconds: (performance.now() - from) / 1000 });
}
rmSync(join(run, 'dist'), { recursive: true });
rmSync(join(run, 'package.json'));

const raw = {
  began: began.toISOString(),
  ended: new Date().toISOString(),
  seed,
  form: short ? 'short' : 'long',
  results,
};
writeFileSync(join(run, 'results.json'), `${JSON.stringify(raw, null, 1)}\n`);
console.log(`\n${resultsTable(results)}`);
const leaks = findLeaks(join(run, 'logs'), readRememberedSecrets(join(run, 'secrets/secrets.txt')));
rmSync(join(run, 'secrets'), { recursive: true, force: true });
for (const leak of leaks) console.log(`\n${leak}`);
if (writeDocs && results.length > 0 && !stop.signal.aborted) {
  const page = join(root, 'docs/reliability.md');
  const chosenOnly = only.map((id) => ` --only ${id}`).join('');
  const command = `./scripts/chaos${chosenOnly} --seed ${seed}${short ? ' --short' : ''}`;
  writeFileSync(page, updatePage(readFileSync(page, 'utf8'), results, began.toISOString().slice(0, 10), command));
}
console.log(`\nFigures and logs: ${run}`);
const bad = leaks.length > 0 || results.some((result) => ['BROKEN', 'FAILED'].includes(verdict(result)));
process.exitCode = bad ? 1 : stop.signal.aborted ? 130 : 0;
console.log(`\n${summaryLine(results, leaks.length > 0)}`);

async function load(id: string): Promise<Experiment> {
  const { experiment } = (await import(pathToFileURL(files.get(id) ?? '').href)) as { experiment: Experiment };
  return experiment;
}

function options() {
  try {
    const { values } = parseArgs({
      options: {
        short: { type: 'boolean', default: false },
        seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
        minutes: { type: 'string' },
        only: { type: 'string', multiple: true, default: [] },
        list: { type: 'boolean', default: false },
        'write-docs': { type: 'boolean', default: false },
      },
    });
    if (!/^\d{1,9}$/.test(values.seed)) {
      throw new Error(`--seed: found ${values.seed}; allowed is a whole number of up to nine digits`);
    }
    if (values.minutes !== undefined && !/^([1-9]\d?|1[0-4]\d|150)$/.test(values.minutes)) {
      throw new Error(`--minutes: found ${values.minutes}; allowed is a whole number from 1 to 150`);
    }
    const unknown = values.only.find((id) => !files.has(id));
    if (unknown !== undefined) {
      throw new Error(`--only: found ${unknown}; allowed are ${[...files.keys()].join(', ')}`);
    }
    const minutes = values.minutes === undefined ? undefined : Number(values.minutes);
    return { ...values, minutes, seed: Number(values.seed), writeDocs: values['write-docs'] };
  } catch (error) {
    const [what] = (error instanceof Error ? error.message : String(error)).split('\n');
    const allowed = '--short, --minutes N, --seed N, --only NAME, --list, --write-docs';
    console.error(`scripts/chaos: ${what?.startsWith('--') ? what : `${what}; allowed are ${allowed}`}`);
    process.exit(2);
  }
}
