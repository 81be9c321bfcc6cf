// The fuzzed emulator: a separate process, started like a user starts it.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { FuzzPart, FuzzSubject } from '../run.ts';
import { changeSettings, checkGoodFlow, dialFor, type EmulatorTarget, readSettings, setUpEmulator } from './flows.ts';
import { emulatorRequests, ISSUER } from './plans.ts';
import { EXTRACTION_RULES } from './values.ts';

/** Clients and users of every fuzzed emulator; the second of each is the victim. */
export const CLIENTS = [
  { id: '6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1a01', secret: 'attacker-client-secret' },
  { id: '6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1a02', secret: 'victim-client-secret' },
] as const;
export const USERS = [
  { id: '6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1abb', secret: 'attacker-password' },
  { id: '6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1acc', secret: 'victim-password' },
] as const;

/** The arguments of `latchkey emulator`. */
const ARGS: readonly string[] = [
  'emulator',
  '--json',
  '--redirect-rule=any',
  `--issuer=${ISSUER}`,
  ...CLIENTS.flatMap(({ id, secret }) => ['--client', `${id}:${secret}`]),
  ...USERS.flatMap(({ id, secret }) => ['--user', `${id}:${secret}`]),
];

/** Starts the built emulator. It has its own process group, so that Ctrl-C ends the fuzz and not the emulator. */
export async function startEmulatorSubject(): Promise<FuzzSubject> {
  const main = join(import.meta.dirname, '../../../dist/main.js');
  const child = spawn(process.execPath, [main, ...ARGS], {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let ended: string | null = null;
  let complaints = '';
  child.once('exit', (status, signal) => {
    ended = signal ?? `status ${status}`;
  });
  child.stderr.on('data', (chunk: Buffer) => {
    complaints = `${complaints}${chunk}`.slice(0, 10_000);
  });
  process.once('exit', () => child.kill('SIGKILL'));
  const line = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).once('line', resolve);
    child.once('exit', () => reject(new Error(`the emulator ended before it listened (${ended}): ${complaints}`)));
  });
  const { base_url, frontend_url } = JSON.parse(line) as { base_url: string; frontend_url: string };
  const target = { baseUrl: base_url, frontendUrl: frontend_url, clients: CLIENTS, users: USERS };
  return {
    ...emulatorSubject(target),
    ended: () => ended,
    complaints: () => complaints,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
    },
  };
}

/** The subject for a running emulator, which the caller ends. */
export function emulatorSubject(target: EmulatorTarget): FuzzSubject {
  return {
    name: 'emulator',
    description: async () => (await fetch(`${target.baseUrl}/_emulator/openapi.json`)).json(),
    begin: () => beginPart(target),
    // Other tests check the limits of its memory, which a run does not reach.
    memory: async () => null,
    ended: () => null,
    complaints: () => '',
    async [Symbol.asyncDispose]() {},
  };
}

async function beginPart(target: EmulatorTarget): Promise<FuzzPart> {
  const { facts, secrets } = await setUpEmulator(target);
  const initialSettings = await readSettings(target);
  return {
    requests: emulatorRequests(facts),
    pipelined: 48,
    pipelinedBytes: Number.POSITIVE_INFINITY,
    dial: (request) => dialFor(target, request),
    wrong(_operation, request, { status, text }) {
      if (status < 400) facts.known.learn(EXTRACTION_RULES, request.path, text);
      const wrong = status >= 500 ? [`answered ${status}`] : [];
      return secrets.some((secret) => text.includes(secret)) ? [...wrong, 'reveals a secret of the victim'] : wrong;
    },
    async settle(answered) {
      // Restores the settings, because for example a rate limit would apply to all later requests.
      const changed = answered.some(([{ method }, { status }]) => status === 200 && method === 'PATCH');
      if (changed) await changeSettings(target, initialSettings);
    },
    meanwhile: async () => {},
    end: () => checkGoodFlow(target),
  };
}
