import { expect, test } from 'vitest';
import { Failure } from '../../src/core/failure.ts';
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

test('snapshot fails with one line if the hub could not write the file', async () => {
  const { takeSnapshot } = hub.administration;
  hub.administration.takeSnapshot = () => {
    throw new Failure('store_unwritable', 'the disk has no room for a snapshot: make room');
  };
  const { status, stdout, stderr } = await hub.latchkey('snapshot');
  hub.administration.takeSnapshot = takeSnapshot;
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
  expect(stderr).toMatch(/^latchkey: the disk has no room for a snapshot: make room\n$/);
});
