import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import type { CredentialsResponse } from '../../../src/control/messages.ts';
import { eventually } from '../../support/hub-process.ts';
import { CONFIGURATION_FILE, InstalledHub, setUpMachine } from './installed-hub.ts';
import { buildChangedPackage, type DebPackage, forgetSchemas, PACKAGES_FOLDER, updatePackages } from './packages.ts';

const run = promisify(execFile);
/** Later than those of all other packages. */
const NEXT = '99.1.0';

/** Paths outside the package's control: logs, and the records of dpkg and systemd. */
const OUTSIDE_PACKAGE = [
  /^\/(root|tmp|run|var\/tmp|var\/log|var\/cache\/(apt|debconf))(\/|$)/,
  /^\/var\/lib\/(dpkg|systemd|private)(\/|$)/,
  /^\/etc\/(group|gshadow|passwd|shadow)-$/,
];

/** Lists each process of the package's Node.js, even if that file was deleted. */
const OUR_PROCESSES = "find /proc -maxdepth 2 -name exe -lname '/usr/lib/latchkey/*'";

/** One machine for all tests: each leaves the package in the state in which the next one finds it. */
let hub: InstalledHub;
let packages: { readonly from: DebPackage; readonly to: DebPackage };
/** Of packages that are built here. */
let folder: string;
let filesBefore: ReadonlySet<string>;
let wallbox: CredentialsResponse;

setUpMachine(['/usr/bin/curl'], async (parts) => {
  packages = await updatePackages();
  folder = await mkdtemp(join(PACKAGES_FOLDER, 'failing-'));
  parts.defer(() => rm(folder, { recursive: true, force: true }));
  hub = parts.use(await InstalledHub.boot());
  filesBefore = await files();
  await hub.install(packages.from);
  wallbox = await hub.startWith('wallbox');
});

describe('an update of the package', () => {
  it('an update of the package keeps grants, an open pairing, secrets, the hub id and the CA', async () => {
    await hub.machine.sh(`echo '# a note of the installer' >>${CONFIGURATION_FILE}`);
    await hub.addAppliance('heat-pump');
    const link = await hub.beginPairing('heat-pump');
    const before = await hub.status();
    const { access_token: token } = await hub.token(wallbox);
    expect(before.hub.version).toBe(packages.from.version.replace('~', '-'));

    await hub.dpkg(packages.to);
    await hub.emulatorIsUp();
    await hub.until('active');
    const { hub: after } = await hub.status();
    expect(after).toMatchObject({
      id: before.hub.id,
      name: before.hub.name,
      ca_fingerprint: before.hub.ca_fingerprint,
    });
    expect(after.version).toBe(packages.to.version.replace('~', '-'));
    expect((await hub.latchkey('setup-code')).stdout).toMatch(/^(-?[A-Z]{4}){4}\n$/);
    expect((await hub.appliance('wallbox')).state).toBe('active');
    expect((await hub.token(wallbox))['access_token']).toBe(token);
    expect(await hub.whoami(String(token))).toBe('200');
    expect((await hub.appliance('heat-pump')).authorize_url).toBe(link.href);
    expect(await hub.logIn(link)).toContain('is connected');
    expect(await hub.machine.sh(`tail -n 1 ${CONFIGURATION_FILE}`)).toBe('# a note of the installer');
    expect(await hub.machine.sh('ls /var/lib/latchkey/upgrades')).toContain(packages.from.version);
  });
});

describe('updates of the package that fail half-way, or find the hub stopped', () => {
  it('an update that can not be unpacked leaves the hub running with its state and version', async () => {
    // A file that belongs to another package.
    const broken = await buildChanged('conflict', async (tree) => {
      await run('cp', ['/bin/true', join(tree, 'usr/bin/curl')]);
    });
    const { status, stderr } = await hub.machine.run(hub.installing(broken), { seconds: 120 });
    expect(status).not.toBe(0);
    expect(stderr).toContain("trying to overwrite '/usr/bin/curl'");
    await hub.until('active');
    expect((await hub.status()).hub.version).not.toBe(NEXT);
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
    expect(await hub.machine.sh('latchkey --version')).toBe(NEXT);
    await hub.start();
  });
});

describe('the removal of the package', () => {
  it('removing the package keeps configuration, secrets and state for a later installation', async () => {
    const { access_token: token } = await hub.token(wallbox);
    // The hub and its watchdog feeder; a command may still be running.
    await eventually(async () => (await hub.machine.run(OUR_PROCESSES)).stdout.trim().split('\n').length === 2);
    await hub.machine.sh('dpkg --remove latchkey', { seconds: 60 });
    expect(await installed()).toBe(`config-files ${NEXT}`);
    expect((await hub.machine.run(`${OUR_PROCESSES}; ls -d /usr/lib/latchkey`)).stdout).toBe('');
    await hub.dpkg({ path: join(folder, 'good.deb'), version: NEXT });
    await hub.until('active');
    expect((await hub.token(wallbox))['access_token']).toBe(token);
  });

  it('purging the package leaves nothing behind', async () => {
    await hub.machine.sh('systemctl enable latchkey.socket latchkey-emulator; dpkg --purge latchkey', { seconds: 60 });
    const leftovers = [...(await files())].filter((path) => !filesBefore.has(path));
    expect(leftovers.filter((path) => !OUTSIDE_PACKAGE.some((pattern) => pattern.test(path)))).toEqual([]);
    // Each user of the command line has a cache of compiled code.
    const ownLeftovers = leftovers.filter((path) => path.includes('latchkey') && !path.startsWith('/root/.cache/'));
    expect(ownLeftovers.filter((path) => !path.startsWith('/var/log/'))).toEqual([]);
    const { stdout } = await hub.machine.run(
      `${OUR_PROCESSES}; systemctl list-units --all --plain --no-legend "latchkey*"`,
    );
    expect(stdout).toBe('');
  });
});

/** A package with the next version and a changed tree. */
async function buildChanged(name: string, change: (tree: string) => Promise<unknown>): Promise<DebPackage> {
  const path = join(folder, `${name}.deb`);
  await buildChangedPackage(packages.to.path, path, NEXT, change);
  return { path, version: NEXT };
}

/** Every path, including `/run` and `/tmp`. */
async function files(): Promise<ReadonlySet<string>> {
  return new Set((await hub.machine.sh('find / /run /tmp /var/tmp -xdev', { seconds: 60 })).split('\n'));
}

/** The package's status and version in dpkg. */
function installed(): Promise<string> {
  return hub.machine.sh(`dpkg-query --show --showformat='\${db:Status-Status} \${Version}' latchkey`);
}
