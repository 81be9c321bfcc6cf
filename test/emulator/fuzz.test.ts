import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { emulatorRequests } from '../../scripts/fuzz.d/emulator/plans.ts';
import { CLIENTS, emulatorSubject, startEmulatorSubject, USERS } from '../../scripts/fuzz.d/emulator/subject.ts';
import { KnownValues } from '../../scripts/fuzz.d/known-values.ts';
import { fuzz } from '../../scripts/fuzz.d/run.ts';
import { startEmulator } from '../../src/emulator/index.ts';
import { root } from '../project/checkout.ts';
import { rememberSecrets } from '../support/logs.ts';
import { IS_LONG_FORM } from '../support/long.ts';

rememberSecrets([...CLIENTS, ...USERS].map(({ secret }) => secret));

/** The long form sends enough requests for every member of every request to occur. */
const REQUESTS = IS_LONG_FORM ? 20_000 : 5000;

test(`${REQUESTS} mutated requests neither stop the emulator nor get a 5xx or a secret from it`, async () => {
  await using subject = await startEmulatorSubject();
  const output: string[] = [];
  const found = await fuzz(subject, { requests: REQUESTS, seed: 1, print: (text) => output.push(text) });
  expect(found.problems).toEqual([]);
  expect(found.sent).toBeGreaterThan(REQUESTS / 2);
  for (const status of [200, 303, 400, 401, 404, 405]) expect(found.statuses.get(status), `${status}`).toBeTruthy();
  expect(found.operations.all.length).toBeGreaterThan(25);
  for (const { name, good, unsent } of found.operations.all) {
    // A reset deletes all state, so valid resets are rare.
    if (name !== 'POST /_emulator/reset' || IS_LONG_FORM) expect(good, `good answers of ${name}`).toBeGreaterThan(0);
    if (IS_LONG_FORM) expect([...unsent], `never sent to ${name}`).toEqual([]);
  }
  expect(output.at(-1)).toMatch(/^100 % {2}\d+ requests, \d+\/s; 200: \d+/);
  expect(subject.ended()).toBeNull();
  expect(subject.complaints()).toBe('');
});

test('the fuzzer reports a 5xx at once, shrinks it, and reproduces it from its seed and path', async () => {
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
  const subject = emulatorSubject({ baseUrl, frontendUrl, clients: CLIENTS, users: USERS });
  const output: string[] = [];
  const run = {
    requests: 1000,
    seed: 7,
    print: (text: string) => output.push(text),
    // Called after the valid flows that each part begins with.
    stopped: () => {
      spoil = true;
      return false;
    },
  };
  const { problems } = await fuzz(subject, run);
  expect(output[0]).toMatch(/^\nproblem: GET \/api\/whoami answered 500\nrequest to base: "GET \/api\/whoami/);
  expect(problems).toHaveLength(1);
  expect(problems[0]).toMatch(
    /^GET \/api\/whoami answered 500\n[\s\S]*the smallest batch that reproduces it has \d requests?\n/,
  );
  const path = / --seed 7 --path ([\d:]+);/.exec(problems[0] ?? '')?.[1] ?? '';
  spoil = false;
  const [again] = (await fuzz(subject, { ...run, path })).problems;
  expect(again).toMatch(/^GET \/api\/whoami answered 500\n/);
  spoil = false;
  expect((await fuzz(subject, { ...run, path, stopped: () => false })).problems).toEqual([]);
});

test('the fuzzer repeats the requests of a seed, and another seed changes them', () => {
  const facts = {
    baseUrl: 'http://127.0.0.1:1',
    clientId: 'a',
    clientSecret: 'b',
    victimId: 'c',
    user: 'd',
    password: 'e',
    known: new KnownValues({
      states: ['f.g.h'],
      codes: ['i'],
      accessTokens: ['j.1.2.3'],
      refreshTokens: ['k.1.2.3'],
      grants: ['l'],
      faults: ['1'],
      deviceCodes: ['o'],
      userCodes: ['BCDF-GHJK'],
    }),
    victimPayload: 'm',
  };
  const some = (seed: number) => fc.sample(emulatorRequests(facts), { seed, numRuns: 500 });
  expect(some(1)).toEqual(some(1));
  expect(some(1)).not.toEqual(some(2));
});

test.each([
  ['--requests', '0'],
  ['--requests', '1e9'],
  ['--seed', '-1'],
  ['--seed', 'x'],
  ['--path', '1:'],
  ['--target', 'portal'],
  ['--nonsense', '1'],
  ['10', '20'],
])('scripts/fuzz rejects %s %s in one line', async (name, value) => {
  const { status, stdout, stderr } = await run([name, value]);
  expect(status).toBe(2);
  expect(stdout).toBe('');
  expect(stderr).toMatch(
    /^scripts\/fuzz: .*allowed are --target emulator or hub, --requests N and --seed S, whole numbers, and --path P of a finding\n$/,
  );
});

test('scripts/fuzz repeats one batch of a run', async () => {
  const { status, stdout } = await run(['--seed', '2', '--requests', '50', '--path', '0']);
  expect(stdout).toMatch(/^seed 2, path 0\n\n\d{1,3} requests in [\s\S]*no problem found\n$/);
  expect(status).toBe(0);
});

test('scripts/fuzz prints the summary so far and ends on Ctrl-C', async () => {
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

/** Runs the fuzzer and waits for its end. */
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
