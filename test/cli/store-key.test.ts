import { expect, test } from 'vitest';
import { toWire } from '../../src/control/messages.ts';
import { shareFakeAdministration } from './command.ts';

const hub = shareFakeAdministration();

test('store-key --rotate reports the new store key in one sentence, or as JSON', async () => {
  expect(await hub.latchkey('store-key', '--rotate')).toMatchObject({
    status: 0,
    stdout: 'The store is encrypted with a new key; the old key no longer opens it.\n',
    stderr: '',
  });
  const { stdout } = await hub.latchkey('store-key', '--rotate', '--json');
  expect(JSON.parse(stdout)).toEqual(toWire(hub.administration.rotation));
});

test('store-key --rotate says what is left to do', async () => {
  hub.administration.rotation = {
    leftovers: ['/var/lib/latchkey/latchkey.db.damaged-1', '/var/lib/latchkey/upgrades'],
    snapshotProblem: 'the disk has no room',
    isCredential: true,
  };
  const { stdout } = await hub.latchkey('store-key', '--rotate');
  expect(stdout).toContain('mv /etc/latchkey/credentials/store.key.next /etc/latchkey/credentials/store.key\n');
  expect(stdout).toContain(
    'There is no snapshot of the store until the hub can make the next one: the disk has no room\n',
  );
  expect(stdout).toContain('\n  /var/lib/latchkey/latchkey.db.damaged-1\n  /var/lib/latchkey/upgrades\n');
});
