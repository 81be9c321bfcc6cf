import { describe, expect, test } from 'vitest';
import { runLatchkey, shareFakeAdministration, spawnLatchkey } from './command.ts';
import type { CliResult } from './running-command.ts';

const unreachableHub = { LATCHKEY_HUB_CONTROL_SOCKET: '/nowhere.sock' };

const hub = shareFakeAdministration();

/** Runs code in a command that runs, and returns how the command ended. */
async function fail(code: string, env: NodeJS.ProcessEnv = {}): Promise<CliResult> {
  const onSignal = encodeURIComponent(`process.on('SIGUSR2',()=>{${code}})`);
  const flags = { NODE_OPTIONS: `--import=data:text/javascript,${onSignal}` };
  const running = spawnLatchkey(['status', '--watch', '--json'], { ...hub.env, ...flags, ...env });
  await running.stdout(/\n/);
  running.process.kill('SIGUSR2');
  return running.ended;
}

describe('LATCHKEY_DEBUG=1', () => {
  test('LATCHKEY_DEBUG=1 shows the stacks of an error and of its causes below its line', async () => {
    const args = ['restore', '/nowhere', '--passphrase-file', '/nowhere', '--yes'];
    const { status, stdout, stderr } = await runLatchkey(args, { ...hub.env, LATCHKEY_DEBUG: '1' });
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    const [line, ...stacks] = stderr.trimEnd().split('\n');
    expect(line).toMatch(/^latchkey: /);
    expect(stacks[0]).toMatch(/^Failure \[\w+\]: /);
    expect(stacks.some((one) => /^ {4}at .*\/cli\//.test(one))).toBe(true);
  });

  test.each(['0', ''])('LATCHKEY_DEBUG=%j shows no stacks', async (value) => {
    const { stderr } = await runLatchkey(['status'], { ...unreachableHub, LATCHKEY_DEBUG: value });
    expect(stderr).toMatch(/^latchkey: no hub is running here [^\n]*\n$/);
  });
});

describe('unexpected errors of a command', () => {
  test.each(["throw new Error('planted')", "Promise.reject(new TypeError('planted'))"])(
    'an unexpected error (%s) ends a command with one line that says how to get more details',
    async (code) => {
      const { status, stderr } = await fail(code);
      expect(status).toBe(1);
      expect(stderr).toBe(
        'latchkey: internal error (planted): run the command again with LATCHKEY_DEBUG=1, and report its output to support\n',
      );
      const again = await fail(code, { LATCHKEY_DEBUG: '1' });
      expect(again.stderr).toMatch(/^latchkey: internal error .*\n\w*Error: planted\n {4}at /);
    },
  );
});
