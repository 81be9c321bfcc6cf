// Fuzzes a portal emulator or a hub of its own with requests that are nearly right, and sums up what came of it.
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Findings, statusLine } from './fuzz.d/findings.ts';
import { grows, growth, judgesMemory } from './fuzz.d/growth.ts';
import { memoryText } from './fuzz.d/run.ts';
import type { Subject } from './fuzz.d/subject.ts';

/** A run this long must have reached every endpoint. */
const ALL_REACHED = 20_000;

const { target, requests, seed, number } = options();
let stopped = false;
process.on('SIGINT', () => {
  // Who asks twice does not want the summary either.
  if (stopped) process.exit(130);
  stopped = true;
});
process.once('SIGTERM', () => process.exit(143));

const subject = await start();
try {
  if (number !== null) {
    console.log(await subject.only(seed, number));
  } else {
    console.log(`seed ${seed}, ${requests} requests`);
    const began = performance.now();
    const filled = judgesMemory(requests) ? await subject.fill() : null;
    if (filled !== null) console.log(`filled what is remembered: ${filled}`);
    const findings = await subject.fuzz({ requests, seed, said: console.log, stopped: () => stopped });
    judge(findings);
    summarize(findings, (performance.now() - began) / 1000);
    process.exitCode = findings.problems.length > 0 ? 1 : stopped ? 130 : 0;
  }
} finally {
  await subject.stop();
}

async function start(): Promise<Subject> {
  if (target === 'emulator') return await (await import('./fuzz.d/emulator-subject.ts')).emulatorSubject();
  // The build, which does not change while the run goes on.
  process.env['LATCHKEY_TEST_MAIN'] ??= join(import.meta.dirname, '../dist/main.js');
  return await (await import('./fuzz.d/hub/subject.ts')).hubSubject();
}

function options() {
  const wrong = (what: string): never => {
    console.error(
      `scripts/fuzz: ${what}; allowed are --target emulator or hub, and --requests N, --seed S and --only N, whole numbers`,
    );
    process.exit(2);
  };
  try {
    const numbers = { requests: { type: 'string' }, seed: { type: 'string' }, only: { type: 'string' } } as const;
    const { values } = parseArgs({ options: { target: { type: 'string' }, ...numbers } });
    const { target = 'emulator' } = values;
    if (target !== 'emulator' && target !== 'hub') return wrong(`--target: found ${JSON.stringify(target)}`);
    const whole = (name: keyof typeof numbers, lowest: number, highest: number) => {
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
      number: whole('only', 0, 1e9),
    };
  } catch (error) {
    return wrong(error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error));
  }
}

/** What only shows at the end of a run. */
function judge(findings: Findings): void {
  const { operations, sent } = findings;
  const ended = subject.ended();
  if (ended !== null) findings.problem(`the ${subject.name} ended`, `${ended}\n${subject.complaints()}`);
  else if (subject.complaints() !== '') findings.problem(`the ${subject.name} complains`, subject.complaints());
  if (sent >= ALL_REACHED) {
    for (const { name, good, unsent } of operations.all) {
      if (good === 0) findings.problem(`${name} never gave a good answer`, `seed ${seed}`);
      if (unsent.size > 0) findings.problem(`${name} was never sent ${[...unsent].join(', ')}`, `seed ${seed}`);
    }
  }
  const growing = stopped ? null : grows(findings.memory);
  if (growing !== null) findings.problem('the memory grows', growing);
}

function summarize({ sent, statuses, memory, operations, problems }: Findings, seconds: number): void {
  const [start, half, end] = [0, Math.floor(memory.length / 2), memory.length - 1].map((index) => memory[index]);
  const { resident, heap } = growth(memory);
  console.log(`\n${sent} requests in ${seconds.toFixed(0)} s (${(sent / seconds).toFixed(0)}/s), seed ${seed}`);
  console.log(`statuses: ${statusLine(statuses)}`);
  if (start !== undefined && half !== undefined && end !== undefined) {
    console.log(`memory: ${memoryText(start)}; at half ${memoryText(half)}; at the end ${memoryText(end)}`);
    console.log(
      `growth in 100,000 requests, second half: ${resident.toFixed(2)} MB resident, heap ${heap.toFixed(2)} MB`,
    );
  }
  console.log('\ngood answers   endpoint');
  for (const { name, good } of operations.all) console.log(`${String(good).padStart(12)}   ${name}`);
  for (const { kind, times } of problems) console.log(`\nproblem (${times} times): ${kind}`);
  console.log(problems.length === 0 ? '\nno problem found' : `\n${problems.length} kinds of problems`);
}
