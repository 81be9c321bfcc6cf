// Updates that fail half-way leave the previous version running.
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { InstalledHub, setUpMachine } from '../machine/installed-hub.ts';
import { type DebPackage, PACKAGES_FOLDER } from '../machine/packages.ts';
import { buildChangedPackage, forgetSchemas } from './changed-package.ts';
import { buildPackage } from './chroot.ts';

const run = promisify(execFile);
const VERSION = '99.0.0';

let hub: InstalledHub;
let folder: string;

setUpMachine(['/usr/bin/curl'], async (parts) => {
  const own = { path: await buildPackage(), version: 'own' };
  folder = await mkdtemp(join(PACKAGES_FOLDER, 'failing-'));
  parts.defer(() => rm(folder, { recursive: true, force: true }));
  hub = parts.use(await InstalledHub.bootInstalled(own));
  await hub.startWith('wallbox');
});

describe('failed updates of the package', () => {
  it('an update that can not be unpacked leaves the hub running with its state and version', async () => {
    // A file that belongs to another package.
    const broken = await buildChanged('conflict', async (tree) => {
      await run('cp', ['/bin/true', join(tree, 'usr/bin/curl')]);
    });
    const { status, stderr } = await hub.machine.run(hub.installing(broken), { seconds: 120 });
    expect(status).not.toBe(0);
    expect(stderr).toContain("trying to overwrite '/usr/bin/curl'");
    await hub.until('active');
    expect((await hub.status()).hub.version).not.toBe(VERSION);
    expect((await hub.appliance('wallbox')).state).toBe('active');
    expect(await hub.machine.sh('dpkg -s latchkey | grep ^Status:')).toBe('Status: install ok installed');
    expect((await hub.machine.run('ls /run/latchkey.upgrade')).stdout).toBe('');
  });

  it('an update that could not read the store is refused before the hub stops', async () => {
    const older = await buildChanged('older', forgetSchemas);
    const before = await hub.machine.property('latchkey', 'MainPID');
    const { status, stderr } = await hub.machine.run(hub.installing(older), { seconds: 120 });
    expect(status).not.toBe(0);
    expect(stderr).toMatch(/latchkey: the store has schema \d+, and .* knows schemas up to 0: nothing was changed/);
    expect(await hub.machine.property('latchkey', 'MainPID')).toBe(before);
    expect((await hub.appliance('wallbox')).state).toBe('active');
  });

  it('an update leaves a stopped hub stopped', async () => {
    await hub.machine.sh('systemctl stop latchkey');
    await hub.dpkg(await buildChanged('good', async () => undefined));
    expect(await hub.machine.property('latchkey', 'ActiveState')).toBe('inactive');
    expect(await hub.machine.property('latchkey-emulator', 'ActiveState')).toBe('active');
    expect(await hub.machine.sh('latchkey --version')).toBe(VERSION);
  });
});

/** A package with another version and a changed tree. */
async function buildChanged(name: string, change: (tree: string) => Promise<void>): Promise<DebPackage> {
  const path = join(folder, `${name}.deb`);
  await buildChangedPackage(await buildPackage(VERSION), path, change);
  return { path, version: VERSION };
}
