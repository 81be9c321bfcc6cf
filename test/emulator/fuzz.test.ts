import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { CLIENTS, FLAGS, residentMemory, USERS } from '../../scripts/fuzz.d/emulator.ts';
import type { Facts } from '../../scripts/fuzz.d/facts.ts';
import { grows } from '../../scripts/fuzz.d/growth.ts';
import { emulatorPlanner } from '../../scripts/fuzz.d/plans.ts';
import { requestOf } from '../../scripts/fuzz.d/requests.ts';
import { fuzz } from '../../scripts/fuzz.d/run.ts';
import { startEmulator } from '../../src/emulator/index.ts';
import { start } from '../cli/command.ts';
import { root } from '../project/checkout.ts';
import { rememberSecrets } from '../support/logs.ts';
import { LONG } from '../support/long.ts';

rememberSecrets([...CLIENTS, ...USERS].map(({ secret }) => secret));

/** In the long form so many that all members of all requests are sent. */
const REQUESTS = LONG ? 20_000 : 5000;

test(`${REQUESTS} mutated requests neither stop the emulator nor get a 5xx or a secret out of it`, async () => {
  const emulator = start(['emulator', ...FLAGS]);
  const heard: string[] = [];
  try {
    const line = JSON.parse(await emulator.stdout(/\n/)) as { base_url: string; frontend_url: string };
    const target = { baseUrl: line.base_url, frontendUrl: line.frontend_url, clients: CLIENTS, users: USERS };
    const memory = async () => ({ resident: residentMemory(emulator.process.pid ?? 0), heap: null });
    const found = await fuzz(target, { requests: REQUESTS, seed: 1, memory, said: (text) => heard.push(text) });
    expect(found.problems).toEqual([]);
    expect(found.sent).toBeGreaterThanOrEqual(REQUESTS);
    for (const status of [200, 303, 400, 401, 404, 405]) expect(found.statuses.get(status), `${status}`).toBeTruthy();
    expect(found.operations.all.length).toBeGreaterThan(25);
    for (const { name, good, unsent } of found.operations.all) {
      expect(good, `good answers of ${name}`).toBeGreaterThan(0);
      if (LONG) expect([...unsent], `never sent to ${name}`).toEqual([]);
    }
    expect(Math.max(...found.memory.map(({ resident }) => resident))).toBeLessThan(500);
    expect(heard.at(-1)).toMatch(/^100 % {2}\d+ requests, \d+\/s, \d+ MB resident; 200: \d+/);
  } finally {
    emulator.process.kill('SIGINT');
  }
  expect(await emulator.ended).toMatchObject({ status: 0, stderr: '' });
});

test('a 5xx is told as soon as it is seen, with the seed and how to see it again, and counted', async () => {
  const clients = CLIENTS.map(({ id, secret }) => ({ id, secret }));
  const users = USERS.map(({ id, secret }) => ({ name: id, password: secret }));
  let spoil = false;
  const intercept = {
    received: ({ endpoint }: { readonly endpoint: string }) => {
      if (spoil && endpoint === 'whoami') throw new Error('planted');
    },
  };
  await using emulator = await startEmulator({ clients, users, intercept });
  const { baseUrl, frontendUrl } = emulator;
  const heard: string[] = [];
  const run = {
    requests: 300,
    seed: 7,
    memory: async () => ({ resident: 0, heap: null }),
    said: (text: string) => heard.push(text),
    // Asked after the good flows that a part begins with.
    stopped: () => {
      spoil = true;
      return false;
    },
  };
  const found = await fuzz({ baseUrl, frontendUrl, clients: CLIENTS, users: USERS }, run);
  const [first] = found.problems;
  expect(first?.kind).toBe('GET /api/whoami answered 500');
  expect(first?.times).toBeGreaterThan(1);
  expect(heard[0]).toMatch(/problem: GET \/api\/whoami answered 500\nseed 7, request (\d+) .* --seed 7 --only \1; /);
  expect(found.problems.map(({ kind }) => kind)).toContain('the good flow failed');
});

test('a heap or a resident memory that grows is a problem, one that is full is none', () => {
  const parts = Array.from({ length: 60 }, (_, index) => index);
  const flat = parts.map((index) => ({ resident: 400 + (index % 7), heap: 80 + (index % 3) / 10 }));
  expect(grows(flat)).toBeNull();
  expect(grows(flat.map(({ resident, heap }, index) => ({ resident, heap: heap + index / 5 })))).toMatch(/^in 100,000/);
  expect(grows(flat.map(({ resident, heap }, index) => ({ resident: resident + index, heap })))).toMatch(/^in 100,000/);
  expect(grows(parts.slice(0, 10).map((index) => ({ resident: 100 * index, heap: index })))).toBeNull();
});

test('a seed gives the same requests again, another one others', () => {
  const eight = (text: string) => Array.from({ length: 8 }, () => text);
  const facts: Facts = {
    baseUrl: 'http://127.0.0.1:1',
    clientId: 'a',
    clientSecret: 'b',
    victimId: 'c',
    user: 'd',
    password: 'e',
    states: eight('f.g.h'),
    codes: eight('i'),
    accessTokens: eight('j.1.2.3'),
    refreshTokens: eight('k.1.2.3'),
    grants: eight('l'),
    faults: eight('1'),
    victimPayload: 'm',
  };
  const some = (seed: number) =>
    Array.from({ length: 500 }, (_, number) => requestOf(seed, number, emulatorPlanner(facts)));
  expect(some(1)).toEqual(some(1));
  expect(some(1)).not.toEqual(some(2));
});

test.each([
  ['--requests', '0'],
  ['--requests', '1e9'],
  ['--seed', '-1'],
  ['--seed', 'x'],
  ['--only', ''],
  ['--target', 'portal'],
  ['--nonsense', '1'],
  ['10', '20'],
])('scripts/fuzz says in one line what is wrong with %s %s', async (name, value) => {
  const { status, stdout, stderr } = await run([name, value]);
  expect(status).toBe(2);
  expect(stdout).toBe('');
  expect(stderr).toMatch(
    /^scripts\/fuzz: .*allowed are --target emulator or hub, and --requests N, --seed S and --only N, whole numbers\n$/,
  );
});

test('scripts/fuzz sends one request of a run again', async () => {
  const { status, stdout } = await run(['--seed', '2', '--only', '7']);
  expect({ status, stdout }).toEqual({
    status: 0,
    stdout: expect.stringMatching(/^request: ".* HTTP\/1\.[01]\\r\\n.*"\nanswer: ".*"\n$/),
  });
});

test('Ctrl-C ends it with the summary so far', async () => {
  const fuzzing = program(['--requests', '20000', '--seed', '2']);
  await expect.poll(fuzzing.stdout).toMatch(/^seed 2, 20000 requests$/m);
  fuzzing.process.kill('SIGINT');
  expect(await fuzzing.ended).toBe(130);
  const [, sent] =
    /\n(\d+) requests in \d+ s .*, seed 2\nstatuses: [\s\S]*POST \/sso\/token\n[\s\S]*no problem found\n$/.exec(
      fuzzing.stdout(),
    ) ?? [];
  expect(Number(sent)).toBeLessThan(20_000);
});

/** Runs the fuzz's program to its end. */
async function run(args: readonly string[]) {
  const { ended, stdout, stderr } = program(args);
  const status = await ended;
  return { status, stdout: stdout(), stderr: stderr() };
}

function program(args: readonly string[]) {
  const child = spawn(process.execPath, [join(root, 'scripts/fuzz.ts'), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [stdout, stderr]: [string[], string[]] = [[], []];
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => stdout.push(chunk));
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => stderr.push(chunk));
  const ended = once(child, 'close').then(([status]) => status as number | null);
  return { process: child, ended, stdout: () => stdout.join(''), stderr: () => stderr.join('') };
}
