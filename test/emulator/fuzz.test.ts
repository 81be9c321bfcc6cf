import { expect, test } from 'vitest';
import { CLIENTS, emulatorSubject, startEmulatorSubject, USERS } from '../../scripts/fuzz.d/emulator/subject.ts';
import { fuzz } from '../../scripts/fuzz.d/run.ts';
import { startEmulator } from '../../src/emulator/index.ts';
import { rememberSecrets } from '../support/logs.ts';
import { IS_LONG_FORM } from '../support/long.ts';

rememberSecrets([...CLIENTS, ...USERS].map(({ secret }) => secret));

/** The long form sends enough requests for every member of every request to occur, and each operation to succeed. */
const REQUESTS = IS_LONG_FORM ? 20_000 : 3000;

test(`${REQUESTS} mutated requests neither stop the emulator nor get a 5xx or a secret from it`, async () => {
  await using subject = await startEmulatorSubject();
  const output: string[] = [];
  const found = await fuzz(subject, { requests: REQUESTS, seed: 1, print: (text) => output.push(text) });
  expect(found.problems).toEqual([]);
  expect(found.sent).toBeGreaterThan(REQUESTS / 2);
  for (const status of [200, 303, 400, 401, 404, 405]) expect(found.statuses.get(status), `${status}`).toBeTruthy();
  expect(found.operations.all.length).toBeGreaterThan(25);
  const neverGood = found.operations.all.filter(({ good }) => good === 0).map(({ name }) => name);
  expect(neverGood.length, neverGood.join()).toBeLessThanOrEqual(IS_LONG_FORM ? 0 : 5);
  if (IS_LONG_FORM) expect(found.operations.all.filter(({ unsent }) => unsent.size > 0)).toEqual([]);
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
  await using emulator = await startEmulator({ clients, users, intercept, redirectRule: 'any' });
  const { baseUrl, frontendUrl } = emulator;
  const subject = emulatorSubject({ baseUrl, frontendUrl, clients: CLIENTS, users: USERS });
  const output: string[] = [];
  const run = {
    requests: 1000,
    seed: 2,
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
  const path = / --seed 2 --path ([\d:]+);/.exec(problems[0] ?? '')?.[1] ?? '';
  spoil = false;
  const [again] = (await fuzz(subject, { ...run, path })).problems;
  expect(again).toMatch(/^GET \/api\/whoami answered 500\n/);
  spoil = false;
  expect((await fuzz(subject, { ...run, path, stopped: () => false })).problems).toEqual([]);
});
