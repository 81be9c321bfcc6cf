import { beforeAll, expect, test } from 'vitest';
import {
  runLatchkey,
  shareFakeAdministration,
  spawnLatchkey,
  spawnOnTerminal,
  startOnTerminal,
} from '../../cli/command.ts';

const hub = shareFakeAdministration();

beforeAll(() => {
  hub.administration.set({ name: 'wallbox', state: 'active', scope: 'A', expiresIn: 3600 });
});

test.each(['', 'status', 'appliance add wallbox', 'serve --config /nowhere.toml'])(
  '"%s" has the same result in a process that has run other commands as in a new one',
  async (line) => {
    const args = line.split(' ').filter(Boolean);
    const env = { ...hub.env, NO_COLOR: '1', TZ: 'Europe/Berlin' };
    // The previous command has other arguments and another environment.
    await runLatchkey(['token', 'nobody'], { ...hub.env, LATCHKEY_DEBUG: '1', TZ: 'Asia/Tokyo' });
    const shared = await runLatchkey(args, env);
    expect(shared).toEqual(await spawnLatchkey(args, env).ended);
    expect(shared.stdout + shared.stderr).not.toBe('');
  },
);

test('a command on a terminal has the same result in a process that has run other commands as in a new one', async () => {
  await startOnTerminal(['status'], { ...hub.env, NO_COLOR: '1' }, 80, 24).ended;
  const args = ['unpair', 'wallbox'];
  const shared = await startOnTerminal(args, hub.env).reply(/\[y\/N\] /, 'n\r');
  expect(shared).toEqual(await spawnOnTerminal(args, hub.env).reply(/\[y\/N\] /, 'n\r'));
});
