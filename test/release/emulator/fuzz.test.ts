import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from '../../project/checkout.ts';

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

test('scripts/fuzz ends with status 2 and one line if it is used wrongly', async () => {
  const { status, stdout, stderr } = await run(['--seed', 'x']);
  expect([status, stdout]).toEqual([2, '']);
  expect(stderr).toMatch(/^scripts\/fuzz: --seed: found "x", allowed is 0 to \d+; allowed are .*\n$/);
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
