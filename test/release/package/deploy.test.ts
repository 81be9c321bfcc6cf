// Runs every shell command (```sh) of docs/deploy.md in order, as an installer who follows it from top to bottom.
import { basename, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCurl } from '../../netns/hub-on-host.ts';
import { eventually } from '../../support/hub-process.ts';
import { rememberSecrets } from '../../support/logs.ts';
import { InstalledHub, setUpMachine } from '../machine/installed-hub.ts';
import { buildPackage, LATER, PACKAGES_FOLDER } from '../machine/packages.ts';
import { promptForNothing, readPage, shellBlocks } from './documented-commands.ts';

const GUIDE = readPage('deploy.md');
const HOME = '/home/installer';
const SECRET = 'the-emulated-portals-client-secret';

let hub: InstalledHub;

setUpMachine(['/usr/bin/curl'], async (parts) => {
  const packages = [await buildPackage(), await buildPackage(LATER)];
  hub = parts.use(await InstalledHub.boot());
  const { machine } = hub;
  await machine.sh(`useradd --create-home --home-dir ${HOME} installer`);
  await promptForNothing(machine);
  await machine.write(`${HOME}/passphrase`, 'twelve characters and more\n', '600');
  await machine.sh(`mkdir ${HOME}/first ${HOME}/second`);
  for (const [index, folder] of ['first', 'second'].entries()) {
    const { path = '' } = packages[index] ?? {};
    await machine.sh(`ln -s /mnt/${relative(PACKAGES_FOLDER, path)} ${HOME}/${folder}/${basename(path)}`);
  }
});

/** The commands below a heading, one string per block. */
function blocks(heading: string): string[] {
  return shellBlocks(GUIDE, heading);
}

/** Types a block, in a folder with one package. @returns its output */
function type(block: string, { folder = 'first', input = '' } = {}): Promise<string> {
  // No person uses this terminal.
  const typed = block
    .replace(/latchkey (backup|restore) (\S+)/g, '$& --passphrase-file ../passphrase --yes')
    .replace(/(backup .*) --yes/, '$1');
  return hub.machine.sh(`set -e; export USER=installer; cd ${HOME}/${folder}\n${typed}`, { seconds: 120, input });
}

/** A text about the portal of the examples, with the addresses of the test bench. */
function atTestBench(text = ''): string {
  return text
    .replace('https://api.portal.example', 'http://127.0.0.1:8490')
    .replace('https://portal.example', 'http://127.0.0.1:8491');
}

async function runSection(heading: string, folder?: string): Promise<void> {
  for (const block of blocks(heading)) await type(block, folder === undefined ? {} : { folder });
}

/** Signs in on the hub's page with the code, from another host. @returns the HTTP status */
function signIn(code: string): Promise<string> {
  rememberSecrets([code]);
  const origin = `https://${hub.host.address}:8443`;
  const own = ['--header', `origin: ${origin}`, '--header', 'sec-fetch-site: same-origin'];
  const form = [...own, '--data-urlencode', `code=${code}`, `${origin}/sign-in`];
  return runCurl(hub.peer, ['--insecure', '--output', '/dev/null', '--write-out', '%{http_code}', ...form]);
}

describe('the commands of docs/deploy.md', () => {
  it('the commands of docs/deploy.md lead from a fresh machine to a paired appliance', async () => {
    const [install, code, portal, doctor, terminal, ...more] = blocks(
      'From a fresh Raspberry Pi OS to a paired appliance',
    );
    expect(more).toEqual([]);
    await type(install ?? '');
    // The test bench stands in for the portal, as the last section describes.
    const options = /```toml\n(port = [\s\S]*?)```/.exec(GUIDE)?.[1]?.replace('the-client-secret', SECRET) ?? '';
    await hub.machine.write('/etc/latchkey/emulator.toml', options);
    for (const block of blocks('A test bench: the emulator as a service')) await type(block);
    expect(await type(atTestBench(portal), { input: `${SECRET}\n` })).toContain('home is added.');
    expect(await signIn((await type(code ?? '')).trim())).toBe('303');
    // As on the page, which test/browser shows.
    for (const name of ['heat-pump', 'inverter']) {
      await hub.addAppliance(name);
      await hub.pair(name);
    }
    expect(await type(doctor ?? '')).toMatch(/^ok +appliance\.heat-pump +heat-pump has not got a token yet/m);

    const [add = '', pair = '', status = ''] = (terminal ?? '').trim().split('\n');
    expect(await type(add)).toMatch(/client_secret/);
    const paired = type(pair);
    await eventually(async () => (await hub.appliance('wallbox')).authorize_url !== undefined);
    await hub.logIn(new URL((await hub.appliance('wallbox')).authorize_url ?? ''));
    await paired;
    expect(await type(status)).toMatch(/wallbox +active/);
  });

  it('the commands of docs/deploy.md declare a portal that was added before, and its logins go on', async () => {
    const [secret = '', restart = '', ...more] = blocks('A portal in the configuration');
    expect(more).toEqual([]);
    await hub.machine.write(
      '/etc/latchkey/latchkey.toml',
      atTestBench(/```toml\n(\[portals[\s\S]*?)```/.exec(GUIDE)?.[1]),
    );
    await type(secret, { input: `${SECRET}\n` });
    await type(restart);
    expect((await hub.appliance('wallbox')).state).toBe('active');
  });

  it('the commands of docs/deploy.md for troubleshooting work', async () => {
    await runSection('When something is wrong');
    expect(await hub.machine.sh(`tar -tzf ${HOME}/first/diagnostics.tar.gz`)).toContain('journal.txt');
  });

  it('the commands of docs/deploy.md let members of a group use the command line', async () => {
    expect((await hub.latchkey('status', 'installer')).status).toBe(1);
    await runSection('The command line without root');
    expect((await hub.latchkey('status', 'installer')).stdout).toMatch(/wallbox +active/);
  });

  it('the commands of docs/deploy.md for an LXC container keep the logins, and so does undoing them', async () => {
    const [withoutNamespaces = '', credentials = '', ...more] = blocks('In an LXC container');
    expect(more).toEqual([]);
    const undo = 'rm -r /etc/systemd/system/latchkey.service.d; systemctl daemon-reload; systemctl restart latchkey';
    for (const block of [credentials, withoutNamespaces, `chown -R root: /etc/latchkey/credentials; ${undo}`]) {
      await type(block);
      expect((await hub.appliance('wallbox')).state).toBe('active');
    }
    // As long as this user exists, the service runs as it.
    await hub.machine.sh('systemctl stop latchkey && userdel latchkey && systemctl start latchkey');
  });

  it('the commands of docs/deploy.md apply a changed configuration and show the limits of the sandbox', async () => {
    await runSection('After a change');
    const [score = '', credentials = '', key = '', socket = '', ...more] = blocks('Ports, sandbox and secrets');
    expect(more).toEqual([]);
    const documented = /rates this ([\d.]+)/.exec(GUIDE)?.[1];
    expect(await type(score)).toContain(`Overall exposure level for latchkey.service: ${documented}`);
    for (const block of [credentials, key, socket]) {
      await type(block);
      expect((await hub.appliance('wallbox')).state).toBe('active');
    }
    expect(await hub.machine.property('latchkey.socket', 'ActiveState')).toBe('active');
  });

  it('the commands of docs/deploy.md make a backup, update the package, and go back in both ways', async () => {
    await runSection('Backup');
    await runSection('Updating', 'second');
    expect((await hub.status()).hub.version).toBe(LATER);
    const [back = '', older = '', ...more] = blocks('Going back to an earlier version');
    expect(more).toEqual([]);
    await type(back);
    // The restore restarts the hub.
    await eventually(async () => (await hub.latchkey('refresh wallbox --json')).stdout.includes('"active"'));
    const status = await eventually(async () => {
      const { stdout } = await hub.latchkey('status --json');
      return stdout !== '' && stdout;
    });
    expect(JSON.parse(status).hub.version).not.toBe(LATER);
    await runSection('Updating', 'second');
    await type(older);
    expect((await hub.appliance('wallbox')).state).toBe('active');
  });

  it('the commands of docs/deploy.md make another hub of a machine on which one has run', async () => {
    const before = (await hub.status()).hub;
    await runSection('Images');
    await hub.machine.sh('systemctl start latchkey');
    const { hub: after, appliances } = await hub.status();
    expect(appliances).toEqual([]);
    expect(after.id).not.toBe(before.id);
    expect(after.ca_fingerprint).not.toBe(before.ca_fingerprint);
  });

  it('the commands of docs/deploy.md remove and purge the package', async () => {
    const [remove = '', purge = ''] = blocks('Removing');
    await type(remove);
    expect(await hub.machine.sh('ls /var/lib/latchkey/latchkey.db /etc/latchkey/latchkey.toml')).not.toBe('');
    await type(purge);
    expect((await hub.machine.run('ls -d /var/lib/*/latchkey* /var/lib/latchkey* /etc/latchkey')).stdout).toBe('');
  });
});
