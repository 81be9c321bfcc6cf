import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { fuzz, growth } from './fuzz-run.ts';

const { values } = parseArgs({ options: { requests: { type: 'string' }, seed: { type: 'string' } } });
const requests = Number(values.requests ?? 1_000_000);
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
if (!Number.isInteger(requests) || requests < 1 || !Number.isInteger(seed)) {
  console.error('scripts/fuzz: --requests and --seed are whole numbers');
  process.exit(2);
}
const clients = [
  { id: '6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1a01', secret: 'attacker-client-secret' },
  { id: '6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1a02', secret: 'victim-client-secret' },
] as const;
const users = [
  { id: '6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1abb', secret: 'attacker-password' },
  { id: '6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1acc', secret: 'victim-password' },
] as const;

const args = [
  ...clients.flatMap(({ id, secret }) => ['--client', `${id}:${secret}`]),
  ...users.flatMap(({ id, secret }) => ['--user', `${id}:${secret}`]),
];
const main = join(import.meta.dirname, '../dist/main.js');
const emulator = spawn(process.execPath, [main, 'emulator', '--json', ...args], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
// Whatever ends the run, an error too.
process.once('exit', () => emulator.kill('SIGKILL'));
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
let ended = false;
emulator.once('exit', () => {
  ended = true;
});
for await (const line of createInterface({ input: emulator.stdout })) {
  const { base_url, frontend_url } = JSON.parse(line) as { base_url: string; frontend_url: string };
  console.log(`seed ${seed}, ${requests} requests`);
  const target = { baseUrl: base_url, frontendUrl: frontend_url, clients, users, pid: emulator.pid ?? 0 };
  const began = performance.now();
  const { sent, statuses, memory, problems } = await fuzz(target, requests, seed, console.log);
  const seconds = (performance.now() - began) / 1000;
  const counted = [...statuses].sort(([a], [b]) => a - b).map(([status, times]) => `${status}: ${times}`);
  const found = [...problems, ...(ended ? ['the emulator ended'] : [])];
  const slope = growth(memory);
  // The bounded stores fill up in the first half of a long run; a short one says nothing of this.
  if (memory.length >= 40 && slope > 5) found.push(`memory grows by ${slope.toFixed(1)} MB in 100,000 requests`);
  console.log(`${sent} answers in ${seconds.toFixed(0)} s (${counted.join(', ')})`);
  console.log(
    `memory: ${memory[0]?.toFixed(0)} MB, in the end ${memory.at(-1)?.toFixed(0)} MB, ${slope.toFixed(2)} MB more in 100,000 requests`,
  );
  for (const one of found) console.log(`\n${one}`);
  console.log(found.length === 0 ? 'no problem found' : `\n${found.length} problems`);
  process.exitCode = found.length === 0 ? 0 : 1;
  break;
}
emulator.kill('SIGKILL');
