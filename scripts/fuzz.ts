// Fuzzes a portal emulator or a hub, which it starts, with nearly valid requests, and prints a summary.
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { memoryGrowth, memoryProblem, memoryText } from './fuzz.d/memory.ts';
import { type FuzzOutcome, type FuzzSubject, fuzz, statusLine } from './fuzz.d/run.ts';

/** A run of this many requests must have reached every endpoint. */
const MIN_REQUESTS_FOR_COVERAGE = 20_000;

const { target, requests, seed, path } = options();
let stopped = false;
process.on('SIGINT', () => {
  // A second interrupt ends the run without a summary.
  if (stopped) process.exit(130);
  stopped = true;
});
process.once('SIGTERM', () => process.exit(143));

await using subject = await start();
console.log(`seed ${seed}, ${path === undefined ? `${requests} requests` : `path ${path}`}`);
const began = performance.now();
const run = { requests, seed, ...(path !== undefined && { path }), print: console.log, stopped: () => stopped };
const outcome = await fuzz(subject, run);
const problems = [...outcome.problems, ...finalProblems(outcome)];
summarize(outcome, problems, (performance.now() - began) / 1000);
process.exitCode = problems.length > 0 ? 1 : stopped ? 130 : 0;

async function start(): Promise<FuzzSubject> {
  if (target === 'emulator') return await (await import('./fuzz.d/emulator/subject.ts')).startEmulatorSubject();
  // The build, because the sources may change during the run.
  process.env['LATCHKEY_TEST_MAIN'] ??= join(import.meta.dirname, '../dist/main.js');
  return await (await import('./fuzz.d/hub/subject.ts')).startHubSubject();
}

function options() {
  const wrong = (what: string): never => {
    console.error(
      `scripts/fuzz: ${what}; allowed are --target emulator or hub, --requests N and --seed S, whole numbers, and --path P of a finding`,
    );
    process.exit(2);
  };
  try {
    const texts = { target: { type: 'string' }, requests: { type: 'string' }, seed: { type: 'string' } } as const;
    const { values } = parseArgs({ options: { ...texts, path: { type: 'string' } } });
    const { target = 'emulator', path } = values;
    if (target !== 'emulator' && target !== 'hub') return wrong(`--target: found ${JSON.stringify(target)}`);
    if (path !== undefined && !/^\d+(:\d+)*$/.test(path)) return wrong(`--path: found ${JSON.stringify(path)}`);
    const whole = (name: 'requests' | 'seed', lowest: number, highest: number) => {
      const text = values[name];
      if (text === undefined) return null;
      const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
      return value >= lowest && value <= highest
        ? value
        : wrong(`--${name}: found ${JSON.stringify(text)}, allowed is ${lowest} to ${highest}`);
    };
    return {
      target,
      requests: whole('requests', 1, 1e9) ?? 1_000_000,
      seed: whole('seed', 0, 2 ** 31 - 1) ?? Math.floor(Math.random() * 2 ** 31),
      path,
    };
  } catch (error) {
    return wrong(error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error));
  }
}

/** Problems that only show at the end of a run. */
function finalProblems({ operations, sent, memory, problems: found }: FuzzOutcome): string[] {
  const problems: string[] = [];
  const ended = subject.ended();
  if (ended !== null) problems.push(`the ${subject.name} ended: ${ended}\n${subject.complaints()}`);
  else if (subject.complaints() !== '') problems.push(`the ${subject.name} logged an error: ${subject.complaints()}`);
  for (const { name, good, unsent } of sent < MIN_REQUESTS_FOR_COVERAGE || found.length > 0 ? [] : operations.all) {
    if (good === 0) problems.push(`${name}: no request succeeded`);
    if (unsent.size > 0) problems.push(`${name}: these were never sent: ${[...unsent].join(', ')}`);
  }
  const growing = stopped ? null : memoryProblem(memory);
  return growing === null ? problems : [...problems, `memory grows: ${growing}`];
}

function summarize({ sent, statuses, memory, operations }: FuzzOutcome, problems: string[], seconds: number): void {
  const [start, half, end] = [0, Math.floor(memory.length / 2), memory.length - 1].map((index) => memory[index]);
  console.log(`\n${sent} requests in ${seconds.toFixed(0)} s (${(sent / seconds).toFixed(0)}/s), seed ${seed}`);
  console.log(`statuses: ${statusLine(statuses)}`);
  if (start !== undefined && half !== undefined && end !== undefined) {
    console.log(`memory: ${memoryText(start)}; at half ${memoryText(half)}; at the end ${memoryText(end)}`);
  }
  const grown = memoryGrowth(memory);
  if (grown !== null) console.log(`growth in 100,000 requests, second half: ${memoryText(grown)}`);
  console.log('\n  successful   endpoint');
  for (const { name, good } of operations.all) console.log(`${String(good).padStart(12)}   ${name}`);
  for (const problem of problems) console.log(`\nproblem: ${problem}`);
  console.log(problems.length === 0 ? '\nno problem found' : `\n${problems.length} problems`);
}
