// The emulator that is fuzzed: a process of its own, as people start it.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Memory } from './findings.ts';
import type { Target } from './flows.ts';

/** Clients and users of every fuzzed emulator; the second of each is the victim. */
export const CLIENTS = [
  { id: '6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1a01', secret: 'attacker-client-secret' },
  { id: '6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1a02', secret: 'victim-client-secret' },
] as const;
export const USERS = [
  { id: '6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1abb', secret: 'attacker-password' },
  { id: '6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1acc', secret: 'victim-password' },
] as const;

/** What `latchkey emulator` is started with. */
export const FLAGS: readonly string[] = [
  '--json',
  ...CLIENTS.flatMap(({ id, secret }) => ['--client', `${id}:${secret}`]),
  ...USERS.flatMap(({ id, secret }) => ['--user', `${id}:${secret}`]),
];

export interface FuzzedEmulator {
  readonly target: Target;
  /** How it ended by itself, or null while it runs. */
  ended(): string | null;
  /** What it wrote to standard error: nothing, if all is well. */
  complaints(): string;
  memory(): Promise<Memory>;
  kill(): void;
}

/** Starts the built emulator. It has a process group of its own, so that Ctrl-C ends the fuzz and not the emulator. */
export async function startFuzzed(): Promise<FuzzedEmulator> {
  const probe = join(import.meta.dirname, 'heap-probe.ts');
  const main = join(import.meta.dirname, '../../dist/main.js');
  const child = spawn(process.execPath, ['--expose-gc', '--import', probe, main, 'emulator', ...FLAGS], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    detached: true,
  });
  let ended: string | null = null;
  let complaints = '';
  let told: (bytes: number) => void = () => {};
  child.on('message', (bytes) => told(Number(bytes)));
  child.once('exit', (status, signal) => {
    ended = signal ?? `status ${status}`;
    told(0);
  });
  child.stderr?.on('data', (chunk: Buffer) => {
    complaints = `${complaints}${chunk}`.slice(0, 10_000);
  });
  process.once('exit', () => child.kill('SIGKILL'));
  if (child.stdout === null) throw new Error('no output to read');
  const line = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout ?? process.stdin }).once('line', resolve);
    child.once('exit', () => reject(new Error(`the emulator ended before it listened (${ended}): ${complaints}`)));
  });
  const { base_url, frontend_url } = JSON.parse(line) as { base_url: string; frontend_url: string };
  return {
    target: { baseUrl: base_url, frontendUrl: frontend_url, clients: CLIENTS, users: USERS },
    ended: () => ended,
    complaints: () => complaints,
    async memory() {
      if (ended !== null) return { resident: 0, heap: null };
      const resident = residentMemory(child.pid ?? 0);
      const heap = await new Promise<number>((resolve) => {
        told = resolve;
        child.send('memory');
      });
      return { resident, heap: heap / 2 ** 20 };
    },
    kill: () => child.kill('SIGKILL'),
  };
}

/** MB of a process on Linux. */
export function residentMemory(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}
