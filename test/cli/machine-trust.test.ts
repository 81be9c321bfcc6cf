import { existsSync } from 'node:fs';
import { mkdtemp, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { changeMachineTrust } from '../../src/cli/machine-trust.ts';
import { runLatchkey } from './command.ts';

test('a list of CAs that cannot be made fails with the reason, and only a missing permission with the advice to be root', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'lk-trust-'));
  const failure = await changeMachineTrust('hub', 'PEM', [folder, '/bin/false']).catch(String);
  expect(failure).toMatch(/the list of CAs can't be changed/);
  expect(failure).not.toContain('root');
  expect(await readFile(join(folder, 'hub.crt'), 'utf8')).toBe('PEM');
});

test.skipIf(!existsSync('/usr/sbin/update-ca-certificates'))(
  'two hubs on one machine have files of their own, because the names contain the ports',
  async () => {
    const { stderr } = await runLatchkey(['ca', '--uninstall', '--from', 'https://192.0.2.7:8543']);
    expect(stderr).toContain('/latchkey-192.0.2.7-8543.crt');
  },
);
