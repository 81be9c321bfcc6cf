// The emulator that is fuzzed: a process of its own, as people start it.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { exchange } from '../exchange.ts';
import { type Memory, memoryOf, PROBE } from '../memory.ts';
import { FORM, type FuzzRequest, good, JSON_TYPE, type Origin } from '../requests.ts';
import type { Part, Subject } from '../run.ts';
import { disturb } from './disturb.ts';
import { begin, changeSettings, dialOf, goodFlow, reset, settings, type Target } from './flows.ts';
import { emulatorRequests } from './plans.ts';
import { learn } from './values.ts';

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
const ARGS: readonly string[] = [
  'emulator',
  '--json',
  ...CLIENTS.flatMap(({ id, secret }) => ['--client', `${id}:${secret}`]),
  ...USERS.flatMap(({ id, secret }) => ['--user', `${id}:${secret}`]),
];

/** Starts the built emulator. It has a process group of its own, so that Ctrl-C ends the fuzz and not the emulator. */
export async function startEmulatorSubject(): Promise<Subject> {
  const main = join(import.meta.dirname, '../../../dist/main.js');
  const child = spawn(process.execPath, [...PROBE.flags, main, ...ARGS], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...PROBE.env },
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
    ...emulatorSubject(target, () => memoryOf(child.pid ?? 0, true)),
    ended: () => ended,
    complaints: () => complaints,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
    },
  };
}

/** An emulator that runs, and that somebody else ends. */
export function emulatorSubject(target: Target, memory: () => Promise<Memory>): Subject {
  return {
    name: 'emulator',
    description: async () => (await fetch(`${target.baseUrl}/_emulator/openapi.json`)).json(),
    fill: () => fill(target),
    begin: () => beginPart(target),
    memory,
    ended: () => null,
    complaints: () => '',
    async [Symbol.asyncDispose]() {},
  };
}

async function beginPart(target: Target): Promise<Part> {
  const { facts, secrets } = await begin(target);
  const standing = await settings(target);
  const requests = emulatorRequests(facts);
  return {
    requests,
    pipelined: 48,
    pipelinedBytes: Number.POSITIVE_INFINITY,
    dial: (request) => dialOf(target, request),
    wrong(_operation, request, { status, text }) {
      if (status < 400) learn(facts, request.path, text);
      const wrong = status >= 500 ? [`answered ${status}`] : [];
      return secrets.some((secret) => text.includes(secret)) ? [...wrong, 'tells a secret of the victim'] : wrong;
    },
    async settle(answered) {
      // Else one limit of the rate would answer all that follows.
      const changed = answered.some(([{ method }, { status }]) => status === 200 && method === 'PATCH');
      if (changed) await changeSettings(target, standing);
    },
    meanwhile: async () => {},
    async end(turn, seed, { count }) {
      await disturb(target, facts, requests, { turn, seed, count });
      await goodFlow(target);
    },
  };
}

/** States, codes and pairs of tokens that an emulator remembers; what else it remembers is less. */
const REMEMBERED = 200_000;
/** Requests on one connection, and connections at a time. */
const PIPELINED = 100;
const LANES = 4;

/** States, codes and tokens in equal parts: about what the requests of the fuzz get. */
async function fill(target: Target): Promise<void> {
  const { facts } = await begin(target);
  await changeSettings(target, { refresh_grace: 1e9 });
  const client = `client_id=${facts.clientId}&client_secret=${facts.clientSecret}`;
  const refresh = `grant_type=refresh_token&refresh_token=${facts.known.all('refreshTokens')[1]}&${client}`;
  const login = JSON.stringify({ state: facts.known.all('states')[1], user: facts.user });
  const kinds = [
    post('base', `/external/oauth2helper/config/${facts.clientId}`, JSON_TYPE, ''),
    post('base', '/_emulator/login', JSON_TYPE, login),
    post('frontend', '/sso/token', FORM, refresh),
  ];
  let left = REMEMBERED / kinds.length;
  const lane = async () => {
    while (left > 0) {
      left -= PIPELINED;
      for (const one of kinds) {
        const { got, how } = await exchange(dialOf(target, one), Array<FuzzRequest>(PIPELINED).fill(one));
        const right = got.filter(({ status }) => status === 200).length;
        if (right < PIPELINED) throw new Error(`${one.path} gave ${right} good answers of ${PIPELINED}: ${how}`);
      }
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  await reset(target);
}

function post(origin: Origin, path: string, type: string, body: string): FuzzRequest {
  return good({ origin, method: 'POST', path, heads: [type], body });
}
