import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { Timers } from '../../src/core/clock.ts';
import { commandHook } from '../../src/notify/command.ts';
import { systemTimers } from '../../src/system/clock.ts';
import { eventually } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { isRunning } from '../support/processes.ts';

const MESSAGE = '{"status":"raised"}\n';
const SECRET = 'hook-argument-c07d1e55';
rememberSecrets([SECRET]);

const folder = mkdtempSync(join(tmpdir(), 'latchkey-hook-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const never = new AbortController().signal;
let files = 0;

function file(): string {
  files += 1;
  return join(folder, `${files}`);
}

/** Runs a hook that is a shell script; `$1` and so on are its arguments. */
function shell(script: string, ...args: string[]) {
  return hook(['sh', '-c', script, 'hook', ...args]);
}

function hook(command: [string, ...string[]], signal = never) {
  return commandHook(command, systemTimers, { run: 700, term: 300 }).deliver(MESSAGE, signal, 'msg-1');
}

async function waitUntilDeleted(path: string): Promise<void> {
  const pid = Number(readFileSync(path, 'utf8'));
  expect(pid).toBeGreaterThan(0);
  await eventually(async () => !isRunning(pid), 5);
}

describe('the notice command', () => {
  test('the notice command gets the message on standard input, runs in / and gets its arguments unchanged', async () => {
    const path = file();
    expect(await shell('{ cat; pwd; echo "$2"; } > "$1"', path, 'a b; $(c) "')).toMatchObject({ ok: true });
    expect(readFileSync(path, 'utf8')).toBe(`${MESSAGE}/\na b; $(c) "\n`);
  });

  test('the notice command gets only a few environment variables', async () => {
    const path = file();
    const env = { PATH: process.env['PATH'], LANG: 'C.UTF-8', LATCHKEY_NOTIFY_WEBHOOK: SECRET };
    const limits = { run: 5000, term: 300 };
    await commandHook(['sh', '-c', 'env > "$0"', path], systemTimers, limits, env).deliver(MESSAGE, never, 'msg-1');
    const names = [...readFileSync(path, 'utf8').matchAll(/^(\w+)=/gm)].map(([, name]) => name);
    // The others are those of the shell itself.
    expect(names.filter((name) => !['PWD', '_', 'SHLVL'].includes(name ?? '')).sort()).toEqual(['LANG', 'PATH']);
  });

  test('a failed notice command is reported with its status and its last line of output', async () => {
    expect(await shell('echo one >&2; printf "two \\033[31m\\n\\n" >&2; exit 3')).toEqual({
      ok: false,
      detail: 'exited with status 3: two \u{fffd}[31m',
      retryable: true,
    });
  });

  test('a notice command that does not read its input succeeds, whatever the size of the message', async () => {
    const long = commandHook(['true'], systemTimers, { run: 5000, term: 300 });
    expect(await long.deliver('x'.repeat(1_000_000), never, 'msg-1')).toMatchObject({ ok: true });
  });

  test.each<[what: string, command: [string, ...string[]], detail: string]>([
    ['that is not there', ['/nowhere/hook', SECRET], 'could not be run: the program does not exist'],
    ['that may not be run', [folder, SECRET], 'could not be run: this user is not permitted to run it'],
    ['that was killed', ['sh', '-c', 'kill -9 $$', SECRET], 'was killed by SIGKILL'],
  ])('a notice command %s is reported without its arguments', async (_what, command, detail) => {
    expect(await hook(command)).toEqual({ ok: false, detail, retryable: true });
  });

  test('the notice command is named by its program only', () => {
    expect(commandHook(['/usr/local/bin/tell', SECRET], systemTimers).target).toBe('tell');
  });
});

describe('a hanging notice command', () => {
  test('a notice command that ignores SIGTERM is killed with all its children', async () => {
    const [own, child] = [file(), file()];
    const script =
      'trap "" TERM; echo $$ > "$1"; sh -c "trap \\"\\" TERM; echo \\$\\$ > $2; while :; do sleep 1; done" & while :; do sleep 1; done';
    expect(await shell(script, own, child)).toMatchObject({ ok: false, detail: 'did not end within 0.7 s' });
    await waitUntilDeleted(own);
    await waitUntilDeleted(child);
  });

  test('a notice command is ended when the hub ends', async () => {
    const ending = new AbortController();
    const path = file();
    const delivered = hook(['sh', '-c', 'echo $$ > "$0"; exec sleep 60', path], ending.signal);
    await eventually(async () => existsSync(path) && readFileSync(path, 'utf8') !== '', 5);
    ending.abort();
    expect(await delivered).toMatchObject({ ok: false, detail: 'was killed by SIGTERM' });
    await waitUntilDeleted(path);
  });

  test('no remaining timer kills a notice command after its process id may be reused', async () => {
    const ending = new AbortController();
    const armed = new Set<object>();
    const timers: Timers = {
      ...systemTimers,
      after(delay, run) {
        const timer = {};
        armed.add(timer);
        const cancel = systemTimers.after(delay, () => {
          armed.delete(timer);
          run();
          // The hub stops exactly when the command reaches its timeout.
          ending.abort();
        });
        return () => {
          armed.delete(timer);
          cancel();
        };
      },
    };
    const slow = commandHook(['sh', '-c', 'trap "" TERM; sleep 0.4'], timers, { run: 100, term: 5000 });
    expect(await slow.deliver(MESSAGE, ending.signal, 'msg-1')).toMatchObject({ ok: false });
    expect(armed.size).toBe(0);
  });

  test('a child that holds the pipes of a notice command is ended with the command', async () => {
    const path = file();
    const delivered = await shell('sleep 60 & echo $! > "$1"; exit 0', path);
    expect(delivered).toMatchObject({ ok: true });
    await waitUntilDeleted(path);
  });
});

test('a notice command that floods its output does not use much memory', async () => {
  const before = process.memoryUsage().rss;
  const flood = 'head -c 300000000 /dev/zero';
  const hooked = commandHook(['sh', '-c', `${flood}; ${flood} >&2; echo >&2; echo the end >&2; exit 1`], systemTimers, {
    run: 30_000,
    term: 300,
  });
  expect(await hooked.deliver(MESSAGE, never, 'msg-1')).toMatchObject({
    detail: 'exited with status 1: the end',
  });
  expect(process.memoryUsage().rss - before).toBeLessThan(150_000_000);
});
