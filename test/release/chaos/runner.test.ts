import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { root, temporaryFolder } from '../../project/checkout.ts';
import { isRunning } from '../../support/processes.ts';
import { waitFor } from '../../support/wait-for.ts';

/** Experiments that come to every end there is. */
const EXPERIMENTS = {
  good: `async run({ long, progress }, random) {
    progress('half way');
    return { figures: { 'grants lost': 0, drawn: random.whole(1, 1e9), form: long ? 'long' : 'short' }, broken: [] };
  }`,
  broken: `async run() { return { figures: { 'grants lost': 2 }, broken: ['wallbox lost its grant'] }; }`,
  failing: `async run() { throw new Error('no portal'); }`,
  leaving: `async run({ progress }) {
    const { spawn } = await import('node:child_process');
    progress('left ' + spawn('sleep', ['1000'], { stdio: 'ignore' }).pid);
    return { figures: {}, broken: [] };
  }`,
  endless: `async run({ progress }) {
    for (let round = 0; ; round++) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      progress('round ' + round);
    }
  }`,
  deaf: `async run({ progress }) {
    const { spawn } = await import('node:child_process');
    process.on('SIGTERM', () => {});
    progress('left ' + spawn('sleep', ['1000'], { stdio: 'ignore' }).pid);
    await new Promise((resolve) => setTimeout(resolve, 1e6));
  }`,
  telling: `async run() {
    const { mkdirSync, writeFileSync } = await import('node:fs');
    const logs = process.env.LATCHKEY_TEST_LOGS;
    mkdirSync(logs + '/../secrets');
    writeFileSync(logs + '/../secrets/secrets.txt', '"Zq3vT5kLw8rB2nD7cF"\\n');
    writeFileSync(logs + '/hub.log', 'started\\nrefreshed with Zq3vT5kLw8rB2nD7cF\\n');
    return { figures: {}, broken: [] };
  }`,
};

function start(names: readonly (keyof typeof EXPERIMENTS)[], ...args: string[]) {
  const folder = temporaryFolder();
  const [experiments, runs] = [join(folder.path, 'experiments'), join(folder.path, 'runs')];
  mkdirSync(experiments);
  writeFileSync(join(folder.path, 'package.json'), '{"type":"module"}');
  for (const name of names) {
    const text = `export const experiment = { name: '${name}', promise: 'It is ${name}.', ${EXPERIMENTS[name]} };`;
    writeFileSync(join(experiments, `${name}.experiment.ts`), text);
  }
  const env = { ...process.env, LATCHKEY_CHAOS_EXPERIMENTS: experiments, LATCHKEY_CHAOS_RUNS: runs };
  const child = spawn(process.execPath, [join(root, 'scripts/chaos.ts'), ...args], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const said = { stdout: '', stderr: '' };
  child.stdout.on('data', (piece) => (said.stdout += piece));
  child.stderr.on('data', (piece) => (said.stderr += piece));
  return {
    said,
    child,
    ended: once(child, 'close').then(([status]) => Number(status)),
    says: (pattern: RegExp) => waitFor(() => expect(said.stdout).toMatch(pattern), 20_000),
    raw: () => JSON.parse(readFileSync(join(runs, globSync('*/results.json', { cwd: runs })[0] ?? ''), 'utf8')),
    [Symbol.dispose]() {
      child.kill('SIGKILL');
      folder[Symbol.dispose]();
    },
  };
}

describe.concurrent('scripts/chaos', () => {
  test('scripts/chaos runs every experiment, exits with 1 after any failure, and leaves no process behind', async () => {
    using run = start(['broken', 'failing', 'good', 'leaving', 'telling'], '--seed', '5');
    expect(await run.ended).toBe(1);
    expect(run.said.stdout).toMatch(/broken +grants lost: 2 +BROKEN/);
    expect(run.said.stdout).toMatch(/failing +did not finish, after \d+ s +FAILED/);
    expect(run.said.stdout).toMatch(/half way[\s\S]+good +grants lost: 0 +held/);
    expect(run.said.stdout).toMatch(/^broken: wallbox lost its grant$/m);
    expect(run.said.stdout).toMatch(/^failing failed: Error: no portal/m);
    expect(run.said.stdout).toMatch(/hub\.log:2: a secret, as it is/);
    expect(run.said.stdout).not.toContain('Zq3vT5kLw8rB2nD7cF');
    expect(run.said.stdout).toMatch(/\n3 passed, 3 failed, 0 skipped\n$/);
    const left = Number(/left (\d+)/.exec(run.said.stdout)?.[1]);
    expect(left).toBeGreaterThan(0);
    await waitFor(() => expect(isRunning(left)).toBe(false), 5000);

    using other = start(['good', 'broken'], '--seed', '5', '--short', '--only', 'good');
    expect([await other.ended, other.said.stderr]).toEqual([0, '']);
    expect(other.raw().results).toHaveLength(1);
    const figuresOf = (one: typeof run) =>
      one.raw().results.find(({ id }: { id: string }) => id === 'good').outcome.finding.figures;
    expect(figuresOf(run)).toMatchObject({ 'grants lost': 0, form: 'long' });
    expect(figuresOf(other)).toEqual({ ...figuresOf(run), form: 'short' });
  });

  test.each([
    [['--only', 'bad'], /^scripts\/chaos: --only: found bad; allowed are good$/],
    [['--minutes', '0'], /^scripts\/chaos: --minutes: found 0; allowed is a whole number from 1 to 150$/],
    [['--fast'], /^scripts\/chaos: Unknown option '--fast'.*; allowed are --short, --minutes N, --seed N/],
  ])('scripts/chaos exits with 2 and prints one line for %o', async (args, line) => {
    using run = start(['good'], ...args);
    expect(await run.ended).toBe(2);
    expect(run.said.stdout).toBe('');
    expect(run.said.stderr.trimEnd()).toMatch(line);
    expect(run.said.stderr.trimEnd()).not.toContain('\n');
  });

  test('scripts/chaos --list prints each experiment with its promise', async () => {
    using list = start(['good', 'broken'], '--list');
    expect(await list.ended).toBe(0);
    expect(list.said.stdout).toBe('broken: broken\n    It is broken.\ngood: good\n    It is good.\n');
  });

  test('scripts/chaos stops on Ctrl-C and prints what was found until then', async () => {
    using run = start(['endless', 'good'], '--only', 'endless');
    await run.says(/round 3/);
    run.child.kill('SIGINT');
    expect(await run.ended).toBe(130);
    expect(run.said.stdout).toMatch(/endless +stopped after \d+ s: round \d+ +stopped/);
  });

  test('scripts/chaos leaves no process behind after a second Ctrl-C or a kill', async () => {
    for (const signals of [['SIGINT', 'SIGINT'], ['SIGKILL']] as const) {
      using run = start(['deaf']);
      await run.says(/left \d+/);
      const left = Number(/left (\d+)/.exec(run.said.stdout)?.[1]);
      expect(isRunning(left)).toBe(true);
      for (const signal of signals) {
        run.child.kill(signal);
        await sleep(200);
      }
      await run.ended;
      await waitFor(() => expect(isRunning(left)).toBe(false), 5000);
    }
  });
});
