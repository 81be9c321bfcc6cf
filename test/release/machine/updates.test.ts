import { describe, expect, it } from 'vitest';
import type { CredentialsResponse } from '../../../src/control/messages.ts';
import { eventually } from '../../support/hub-process.ts';
import { CONFIGURATION_FILE, InstalledHub, setUpMachine } from './installed-hub.ts';
import { type DebPackage, updatePackages } from './packages.ts';

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
let filesBefore: ReadonlySet<string>;
let wallbox: CredentialsResponse;

setUpMachine(['/usr/bin/curl'], async (parts) => {
  packages = await updatePackages();
  hub = parts.use(await InstalledHub.boot());
  filesBefore = await files();
  await hub.install(packages.from);
  wallbox = await hub.startWith('wallbox');
});

describe('updates and removal of the package', () => {
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
    expect((await hub.latchkey('setup-code')).stdout).toMatch(/^(-?[A-Z]{4}){3}\n$/);
    expect((await hub.appliance('wallbox')).state).toBe('active');
    expect((await hub.token(wallbox))['access_token']).toBe(token);
    expect(await hub.whoami(String(token))).toBe('200');
    expect((await hub.appliance('heat-pump')).authorize_url).toBe(link.href);
    expect(await hub.logIn(link)).toContain('is connected');
    expect(await hub.machine.sh(`tail -n 1 ${CONFIGURATION_FILE}`)).toBe('# a note of the installer');
    expect(await hub.machine.sh('ls /var/lib/latchkey/upgrades')).toContain(packages.from.version);
  });

  it('removing the package keeps configuration, secrets and state for a later installation', async () => {
    const { access_token: token } = await hub.token(wallbox);
    // The hub and its watchdog feeder; a command may still be running.
    await eventually(async () => (await hub.machine.run(OUR_PROCESSES)).stdout.trim().split('\n').length === 2);
    await hub.machine.sh('dpkg --remove latchkey', { seconds: 60 });
    expect(await installed()).toBe(`config-files ${packages.to.version}`);
    expect((await hub.machine.run(`${OUR_PROCESSES}; ls -d /usr/lib/latchkey`)).stdout).toBe('');
    await hub.dpkg(packages.to);
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

/** Every path, including `/run` and `/tmp`. */
async function files(): Promise<ReadonlySet<string>> {
  return new Set((await hub.machine.sh('find / /run /tmp /var/tmp -xdev', { seconds: 60 })).split('\n'));
}

/** The package's status and version in dpkg. */
function installed(): Promise<string> {
  return hub.machine.sh(`dpkg-query --show --showformat='\${db:Status-Status} \${Version}' latchkey`);
}
