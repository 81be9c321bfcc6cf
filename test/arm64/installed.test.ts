import { expect, it } from 'vitest';
import { Arm64Debian, whyNoArm64Debian } from '../support/arm64.ts';
import { arm64Package } from './package.ts';

it('is installed, replaced over a store that it can read and over no newer one, and purged by an arm64 Debian', async (ctx) => {
  const missing = await whyNoArm64Debian();
  if (missing !== null) ctx.skip(missing);
  const file = await arm64Package();
  await using debian = await Arm64Debian.start();
  // This machine's dpkg unpacks, which is quick; the package's scripts and all that they call are arm64 programs.
  const dpkg = (...args: string[]) => debian.beside('dpkg', `--root=${debian.root}`, '--force-architecture', ...args);
  const files = () => debian.run('find', '/usr', '/etc', '/var/lib/latchkey', '-name', '*latchkey*');

  expect(await debian.run('uname', '-m')).toBe('aarch64\n');
  expect(await dpkg('--install', file)).toContain('name a portal in /etc/latchkey/latchkey.toml');
  expect(await debian.run('latchkey', '--version')).toContain('0.1.0');
  expect(await debian.run('grep', 'latchkey', '/etc/group')).toMatch(/^latchkey-admin:/);

  const schema = (byte: string) =>
    debian.run(
      'sh',
      '-c',
      `mkdir -p /var/lib/latchkey; cd /var/lib/latchkey; (head -c 63 /dev/zero; printf '${byte}') >latchkey.db`,
    );
  await schema('\\1');
  await dpkg('--install', file);
  expect(await debian.run('ls', '/var/lib/latchkey/upgrades')).toMatch(/^0001-\S+\.db\n$/);
  await schema('\\377');
  await expect(dpkg('--install', file)).rejects.toThrow('the store has schema 255');

  await dpkg('--purge', 'latchkey');
  await expect(files()).rejects.toThrow(/\/var\/lib\/latchkey.: No such file/u);
});
