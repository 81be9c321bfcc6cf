// Runs the commands of docs/apt.md on Debian 12 and 13, with a repository that a web server on the LAN serves, and
// shows what apt refuses.
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { root, runCommand } from '../../project/checkout.ts';
import { scaleDeadline } from '../../support/deadlines.ts';
import { type DebianSuite, type MachineResult, machineSkipReason } from '../../support/machine.ts';
import { setUpOnce } from '../../support/set-up.ts';
import { InstalledHub, setUpMachine } from '../machine/installed-hub.ts';
import { buildPackage, LATER } from '../machine/packages.ts';
import { MakerKeyRing } from './apt-keys.ts';
import { promptForNothing, readPage, shellBlocks } from './documented-commands.ts';

const GUIDE = readPage('apt.md');
const TOOLS = ['/usr/bin/apt-ftparchive', '/usr/bin/python3', '/usr/bin/curl'];

const run = promisify(execFile);

/** Signs a repository below the served folder again, or adds packages to it. */
async function buildApt(output: string, keys: readonly string[], debs: readonly string[] = []): Promise<void> {
  const options = [...keys.flatMap((key) => ['--key', key]), ...debs.flatMap((deb) => ['--deb', deb])];
  if (debs.length === 0) options.push('--sign-only');
  const { status, stderr } = await runCommand(join(root, 'scripts/build-apt'), ['--output', output, ...options]);
  expect(status, stderr).toBe(0);
}

/** The package of this tree, and a later one. */
let packages: readonly [own: string, later: string];
/** A package with the name of the hub's and without files, for what must not be installed. */
let empty: string;

setUpOnce(
  async (parts) => {
    const folder = await mkdtemp(join(tmpdir(), 'latchkey-apt-packages-'));
    parts.defer(() => rm(folder, { recursive: true, force: true }));
    packages = [(await buildPackage()).path, (await buildPackage(LATER)).path];
    empty = join(folder, 'empty.deb');
    await mkdir(join(folder, 'empty/DEBIAN'), { recursive: true });
    const architecture = (await run('dpkg', ['--print-architecture'])).stdout.trim();
    await writeFile(
      join(folder, 'empty/DEBIAN/control'),
      `Package: latchkey\nVersion: 1.0.0\nArchitecture: ${architecture}\nMaintainer: x\nDescription: x\n`,
    );
    await run('dpkg-deb', ['--root-owner-group', '--build', join(folder, 'empty'), empty]);
  },
  { skipReason: () => machineSkipReason(TOOLS), timeout: scaleDeadline(120_000) },
);

describe.each<[string, DebianSuite]>([
  ['Debian 12', 'bookworm'],
  ['Debian 13', 'trixie'],
])('a hub on %s with an apt repository', (debian, suite) => {
  let hub: InstalledHub;
  let ring: MakerKeyRing;
  let served: string;
  let key: string;

  setUpMachine(
    TOOLS,
    async (parts) => {
      served = await mkdtemp(join(tmpdir(), 'latchkey-apt-'));
      parts.defer(() => rm(served, { recursive: true, force: true }));
      ring = parts.use(await MakerKeyRing.make());
      hub = parts.use(await InstalledHub.boot(suite));
      const [create = ''] = shellBlocks(GUIDE, 'Publishing a repository');
      await ring.sh(create);
      key = join(ring.folder, 'packages-secret.asc');
      await buildApt(repository('good'), [key], [packages[0]]);
      await buildApt(repository('empty'), [key], [empty]);
      hub.peer.spawn('/usr/bin/python3', ['-m', 'http.server', '80', '--directory', served]);
      await hub.machine.sh('rm -f /etc/apt/sources.list');
      await promptForNothing(hub.machine);
      await hub.machine.sh(`curl -s --retry 20 --retry-connrefused http://${hub.peer.address}/ >/dev/null`);
    },
    suite,
  );

  const repository = (name: string) => join(served, name);

  /** Runs commands of the guide for one of the repositories. */
  function type(commands: string, name = 'good'): Promise<MachineResult> {
    const typed = commands.replaceAll('https://packages.example', `http://${hub.peer.address}/${name}`);
    return hub.machine.run(`set -e\n${typed}`, { seconds: 120 });
  }

  async function typeBlock(heading: string, index = 0): Promise<string> {
    const { status, stdout, stderr } = await type(shellBlocks(GUIDE, heading)[index] ?? '');
    expect(status, stdout + stderr).toBe(0);
    return stdout + stderr;
  }

  /** Copies the repository with the empty package under another name, and changes the copy. */
  async function changed(name: string, change: (folder: string) => Promise<unknown>): Promise<void> {
    await cp(repository('empty'), repository(name), { recursive: true });
    await change(repository(name));
  }

  /** Tries to install from a repository that must be refused, and removes its source. @returns apt's messages */
  async function refused(name: string): Promise<string> {
    const [install = ''] = shellBlocks(GUIDE, 'Installing from a repository');
    const { status, stdout, stderr } = await type(install, name);
    expect(status, stdout).not.toBe(0);
    expect((await hub.machine.run('dpkg -s latchkey')).status).not.toBe(0);
    await hub.machine.sh('rm -r /etc/apt/sources.list.d/latchkey.sources /var/lib/apt/lists/*');
    return stderr;
  }

  const version = async () => (await hub.status()).hub.version;

  it(`apt on ${debian} refuses a changed list, and one with the signature of another key`, async () => {
    await changed('release', (folder) =>
      run('sed', ['-i', 's/^Label: Latchkey/Label: latchkey/', join(folder, 'dists/stable/InRelease')]),
    );
    expect(await refused('release')).toMatch(/BADSIG|Message has been manipulated|is not signed|no valid signature/i);

    // The list has another key's signature, and the published key is still the good one.
    await changed('key', async (folder) => {
      await buildApt(folder, [await ring.create('stranger')]);
      await run('cp', [join(repository('empty'), 'latchkey.asc'), join(folder, 'latchkey.asc')]);
    });
    expect(await refused('key')).toMatch(/NO_PUBKEY|Missing key/);
  });

  it(`the commands of docs/apt.md install a hub on ${debian}`, async () => {
    await typeBlock('Installing from a repository');
    // A fresh hub runs; systemd reads its secrets when it starts again.
    await hub.machine.sh('systemctl stop latchkey');
    await hub.configure();
    await hub.machine.sh('systemctl start latchkey-emulator');
    await hub.startWith('wallbox');
    expect(await version()).toMatch(/^\d+\.\d+\.\d+$/);
    expect(await hub.machine.property('latchkey', 'ActiveState')).toBe('active');
  });

  it(`the commands of docs/apt.md update a hub on ${debian} with its state, unless it is held`, async () => {
    const before = (await hub.status()).hub;
    await buildApt(repository('good'), [key], [packages[1]]);
    const [hold = '', unhold = ''] = (shellBlocks(GUIDE, 'Updating from a repository')[1] ?? '').trim().split('\n');
    expect((await type(hold)).status).toBe(0);
    await typeBlock('Updating from a repository');
    expect(await version()).toBe(before.version);
    expect((await type(unhold)).status).toBe(0);
    await typeBlock('Updating from a repository');
    await hub.until('active');
    const after = (await hub.status()).hub;
    expect(after).toMatchObject({ id: before.id, version: LATER, ca_fingerprint: before.ca_fingerprint });
    expect((await hub.ask((control) => control.request('refresh', { name: 'wallbox' }))).state).toBe('active');
  });

  it(`the commands of docs/apt.md add Latchkey to the automatic updates of ${debian}`, async () => {
    await typeBlock('Updating automatically');
    const patterns = await hub.machine.sh('apt-config dump Unattended-Upgrade::Origins-Pattern');
    expect(patterns).toContain('Unattended-Upgrade::Origins-Pattern:: "label=Latchkey";');
    expect(await hub.machine.sh('apt-cache policy')).toMatch(/\bl=Latchkey\b/);
  });

  it(`apt on ${debian} takes only Latchkey from the repository with a pin`, async () => {
    await typeBlock('Allowing only Latchkey');
    const policy = await hub.machine.sh('apt-cache policy; apt-cache policy latchkey');
    expect(policy).toMatch(new RegExp(`^ +-1 http://${hub.peer.address}/good stable/main`, 'm'));
    expect(policy).toContain(`Candidate: ${LATER}\n`);
    expect(policy).toMatch(new RegExp(`${LATER} 500$`, 'm'));
  });

  it(`a hub on ${debian} updates while the repository is signed with two keys, with either of them`, async () => {
    const next = await ring.create('next');
    const [getKey = ''] = (shellBlocks(GUIDE, 'Installing from a repository')[0] ?? '').split('\n');
    const update = async () => {
      const { stdout, stderr } = await type('rm -r /var/lib/apt/lists/*; sudo apt update');
      return stdout + stderr;
    };
    await buildApt(repository('good'), [key, next]);
    expect(await update()).toMatch(/^All packages are up to date/m);
    await buildApt(repository('good'), [next]);
    expect(await update()).toMatch(/NO_PUBKEY|Missing key/);
    expect((await type(getKey)).status).toBe(0);
    await buildApt(repository('good'), [key, next]);
    expect(await update()).toMatch(/^All packages are up to date/m);
  });
});
