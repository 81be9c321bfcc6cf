// Fuzzes a portal emulator of its own with requests that are nearly right, and sums up what came of it.
import { parseArgs } from 'node:util';
import { startFuzzed } from './fuzz.d/emulator.ts';
import { fill } from './fuzz.d/fill.ts';
import { type Findings, statusLine } from './fuzz.d/findings.ts';
import { grows, growth, judgesMemory } from './fuzz.d/growth.ts';
import { fuzz, memoryText, only } from './fuzz.d/run.ts';

/** A run this long must have reached every endpoint. */
const ALL_REACHED = 20_000;

const { requests, seed, number } = options();
let stopped = false;
process.on('SIGINT', () => {
  // Who asks twice does not want the summary either.
  if (stopped) process.exit(130);
  stopped = true;
});
process.once('SIGTERM', () => process.exit(143));

const emulator = await startFuzzed();
const { target } = emulator;
if (number !== null) {
  console.log(await only(target, seed, number));
} else {
  console.log(`seed ${seed}, ${requests} requests`);
  const began = performance.now();
  if (judgesMemory(requests)) {
    await fill(target);
    console.log(`filled what is remembered: ${memoryText(await emulator.memory())}`);
  }
  const { memory } = emulator;
  const findings = await fuzz(target, { requests, seed, memory, said: console.log, stopped: () => stopped });
  judge(findings);
  summarize(findings, (performance.now() - began) / 1000);
  process.exitCode = findings.problems.length > 0 ? 1 : stopped ? 130 : 0;
}
emulator.kill();

function options() {
  const wrong = (what: string): never => {
    console.error(`scripts/fuzz: ${what}; allowed are --requests N, --seed S and --only N, whole numbers`);
    process.exit(2);
  };
  try {
    const named = { requests: { type: 'string' }, seed: { type: 'string' }, only: { type: 'string' } } as const;
    const { values } = parseArgs({ options: named });
    const whole = (name: keyof typeof named, lowest: number, highest: number) => {
      const text = values[name];
      if (text === undefined) return null;
      const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
      return value >= lowest && value <= highest
        ? value
        : wrong(`--${name}: found ${JSON.stringify(text)}, allowed is ${lowest} to ${highest}`);
    };
    return {
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
  const ended = emulator.ended();
  if (ended !== null) findings.problem('the emulator ended', `${ended}\n${emulator.complaints()}`);
  else if (emulator.complaints() !== '') findings.problem('the emulator complains', emulator.complaints());
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
