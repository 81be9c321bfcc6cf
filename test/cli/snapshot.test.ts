import { expect, test } from 'vitest';
import { shareFakeAdministration } from './command.ts';

const hub = shareFakeAdministration();

test('snapshot names the file and its time in one sentence, or as JSON', async () => {
  expect(await hub.latchkey('snapshot')).toMatchObject({
    status: 0,
    stdout: "/var/lib/latchkey/latchkey.db.copy contains the hub's state of 2031-05-05T06:00:00Z.\n",
    stderr: '',
  });
  const { stdout } = await hub.latchkey('snapshot', '--json');
  expect(JSON.parse(stdout)).toEqual({ file: '/var/lib/latchkey/latchkey.db.copy', made: '2031-05-05T06:00:00Z' });
});
