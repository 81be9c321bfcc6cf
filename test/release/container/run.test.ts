// The images in containers, with the least rights that they need: what a hub does there, and what it says of mistakes.
import { existsSync } from 'node:fs';
import { chown, mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import type { CredentialsResponse } from '../../../src/control/messages.ts';
import { SCHEMA_VERSION } from '../../../src/store/sqlite/schema.ts';
import { version } from '../../../src/system/version.ts';
import { scaleDeadline } from '../../support/deadlines.ts';
import { eventually } from '../../support/hub-process.ts';
import { createLan } from '../../support/netns.ts';
import { setUpOnce } from '../../support/set-up.ts';
import { stateFolder } from '../../support/state-folder.ts';
import { Containers, containersSkipReason } from './containers.ts';
import {
  addAndPair,
  askHub,
  type EmulatorContainer,
  hubVariables,
  requestToken,
  startEmulatorContainer,
} from './hub-container.ts';
import { BUILD_TIMEOUT, buildImages } from './images.ts';

const NEWER = '9.9.9';
const USER = 65_532;
const STATE = '/var/lib/latchkey';
const image = (of: string) => `localhost/latchkey:${of}`;

let containers: Containers;
let emulator: EmulatorContainer;
/** A folder for what the tests mount. */
let folder: string;
/** The folder with the portal's secret. */
let secrets: string;

setUpOnce(
  async (parts) => {
    folder = parts.use(stateFolder()).path;
    containers = parts.use(await Containers.create());
    const [own, newer] = [await buildImages(), await buildImages(NEWER)];
    await containers.sh('load', '--input', join(own, `latchkey_${version()}_oci.tar`));
    await containers.sh('load', '--input', join(own, `latchkey-emulator_${version()}_oci.tar`));
    await containers.sh('load', '--input', join(newer, `latchkey_${NEWER}_oci.tar`));
    emulator = await startEmulatorContainer(containers, `localhost/latchkey-emulator:${version()}`);
    secrets = join(folder, 'secrets');
    await mkdir(secrets, { mode: 0o700 });
    await writeFile(join(secrets, 'portal-home.secret'), emulator.client_secret, { mode: 0o400 });
    for (const path of [secrets, join(secrets, 'portal-home.secret')]) await chown(path, USER, USER);
  },
  { skipReason: containersSkipReason, timeout: 2 * BUILD_TIMEOUT + scaleDeadline(60_000) },
);

const hub = (options: readonly string[], of = version(), command: readonly string[] = []) => ({
  image: image(of),
  options: [...hubVariables(emulator), '--volume', `${secrets}:/run/secrets:ro`, ...options],
  command,
});

/** A folder for the state, with an owner. */
async function stateOn(name: string, uid = USER): Promise<string> {
  const path = join(folder, name);
  await mkdir(path, { mode: 0o700 });
  await chown(path, uid, uid);
  return path;
}

describe('a hub in a container', () => {
  const volume = ['--volume', `hub:${STATE}`];
  let appliance: CredentialsResponse;
  let identity: unknown;
  let token: unknown;
  const state = () => containers.volume('hub');
  const identityNow = async () => {
    const { hub: found } = await askHub(state(), (control) => control.request('status'));
    return { id: found.id, pin: found.ca_fingerprint };
  };

  it('a hub in a container runs without root, capabilities or a writable root, and pairs an appliance', async () => {
    await containers.start('hub', hub(volume));
    appliance = await addAndPair(state(), 'wallbox');
    const first = await requestToken(state(), appliance);
    expect(first).toEqual({ status: 200, token: expect.any(String) });
    token = first.token;
    identity = await identityNow();

    const pid = await containers.sh('inspect', '--format', '{{.State.Pid}}', 'hub');
    const status = await readFile(`/proc/${pid}/status`, 'utf8');
    expect(status).toMatch(new RegExp(`^Uid:\t${USER}\t${USER}\t${USER}\t${USER}$`, 'm'));
    expect(status).toMatch(/^CapEff:\t0000000000000000$/m);
    expect(status).toMatch(/^CapBnd:\t0000000000000000$/m);
    expect(status).toMatch(/^NoNewPrivs:\t1$/m);
    const [root = ''] = (await readFile(`/proc/${pid}/mountinfo`, 'utf8'))
      .split('\n')
      .filter((line) => / \/ \/ |[^ ]+ \/ ro/.test(line));
    expect(root).toMatch(/ \/ ro/);
    // Not even a folder in the cache of compiled code, and no word about it.
    expect(await containers.logs('hub')).not.toMatch(/"level":"(warn|error)"|EROFS/);
  });

  it('the doctor in a container says what a container can not see, and nothing fails', async () => {
    const { status, stdout } = await containers.podman('exec', 'hub', 'latchkey', 'doctor', '--json');
    const failed = JSON.parse(stdout).checks.filter(({ result }: { result: string }) => result !== 'ok');
    expect({ status, failed }).toEqual({ status: 0, failed: [] });
    expect(stdout).toContain("it is not known whether NTP has set it, which a container can't see");
    expect(stdout).toContain('the hub runs in a container: its engine starts and restarts it');
  });

  it('the command line in a second container with the same volume makes a backup of the running hub', async () => {
    const backup = join(folder, 'backup');
    await mkdir(backup);
    await writeFile(join(backup, 'passphrase'), 'correct horse battery staple', { mode: 0o600 });
    const { status, stderr } = await containers.podman(
      ...['run', '--rm', '--user', '0', '--network', 'none'],
      ...['--ulimit', 'nofile=4096:4096', '--ulimit', 'nproc=4096:4096'],
      ...[...volume, '--volume', `${backup}:/backup`, image(version())],
      ...['backup', '/backup/hub.copy', '--passphrase-file', '/backup/passphrase'],
    );
    expect({ status, stderr }).toMatchObject({ status: 0 });
    expect((await stat(join(backup, 'hub.copy'))).size).toBeGreaterThan(1000);
  });

  it('a second container with the same volume says so and ends with status 78', async () => {
    const { status, stderr } = await containers.run(hub(volume));
    expect({ status, stderr }).toEqual({
      status: 78,
      stderr: `latchkey: another Latchkey has the store ${STATE}/latchkey.db open: stop it first\n`,
    });
    expect(await requestToken(state(), appliance)).toEqual({ status: 200, token });
  });

  it('a killed container starts again with its grants', async () => {
    await containers.sh('kill', '--signal', 'KILL', 'hub');
    await containers.sh('start', 'hub');
    expect(await requestToken(state(), appliance)).toEqual({ status: 200, token });
    expect(await identityNow()).toEqual(identity);
  });

  it('SIGTERM stops a container at once, with status 0', async () => {
    expect(await containers.remove('hub')).toBe(0);
  });

  it('a newer image keeps the id, the CA, the grants and the secrets', async () => {
    await containers.start('hub', hub(volume, NEWER));
    expect(await requestToken(state(), appliance)).toEqual({ status: 200, token });
    expect(await identityNow()).toEqual(identity);
    expect((await askHub(state(), (control) => control.request('status'))).hub.version).toBe(NEWER);
    expect(await containers.logs('hub')).not.toContain('certificate_names_missing');
    expect(await containers.remove('hub')).toBe(0);
  });

  it('an image refuses a store of another schema in one line, with status 78, and changes nothing', async () => {
    const file = join(state(), 'latchkey.db');
    const setSchema = async (number: number) => {
      const database = new Database(file);
      database.pragma(`user_version = ${number}`);
      database.close();
      // Closing deletes the other two.
      for (const path of [file, `${file}-wal`, `${file}-shm`]) if (existsSync(path)) await chown(path, USER, USER);
    };
    await setSchema(SCHEMA_VERSION + 1);
    const { status, stderr } = await containers.run(hub(volume));
    expect({ status, stderr }).toEqual({
      status: 78,
      stderr: expect.stringMatching(
        new RegExp(
          `^latchkey: the store [^\n]* has schema ${SCHEMA_VERSION + 1}, [^\n]*: install the version that wrote it, [^\n]*\n$`,
        ),
      ),
    });
    await setSchema(SCHEMA_VERSION);
  });
});

/** A mistake in the command that creates the container, and what the hub says about it. */
interface Mistake {
  readonly what: string;
  readonly options: () => Promise<readonly string[]> | readonly string[];
  readonly line: string;
}

const MISTAKES: readonly Mistake[] = [
  {
    what: 'no volume',
    options: () => [],
    line: `the state directory ${STATE} (hub.state_dir) is not on a volume, so all grants would be lost with this container: add "--volume latchkey:${STATE}" to the command that creates it`,
  },
  {
    what: 'a volume of another user',
    options: async () => ['--volume', `${await stateOn('foreign', 4711)}:${STATE}`],
    line: `the state directory ${STATE} (hub.state_dir) belongs to uid 4711, but the hub runs as uid ${USER}: run "chown -R ${USER}:${USER} DIRECTORY" on the host, with the directory of the volume there (rootless Podman: "podman unshare chown …")`,
  },
];

describe('a mistake in the command that creates a container', () => {
  it.each(MISTAKES)('the hub reports $what in one line and ends with status 78', async ({ options, line }) => {
    const result = await containers.run(hub(await options()));
    expect(result).toEqual({ status: 78, stdout: '', stderr: `latchkey: ${line}\n` });
  });

  it('the hub says how to make a secret readable', async () => {
    const file = join(folder, 'root.secret');
    await writeFile(file, 'a secret of root', { mode: 0o400 });
    const { status, stderr } = await containers.run({
      image: image(version()),
      options: [
        ...hubVariables(emulator),
        ...['--volume', `${file}:/run/secrets/portal-home.secret:ro`],
        ...['--volume', `${await stateOn('unreadable-secret')}:${STATE}`],
      ],
    });
    expect(status).toBe(78);
    expect(stderr).toMatch(
      /^latchkey: [^\n]*client_secret_file: \/run\/secrets\/portal-home\.secret can't be read by the hub, which runs as 65532:65532: run "chown 65532:65532"[^\n]*\n$/,
    );
  });
});

describe('the user and the network of a container', () => {
  it('a container runs as any other user that owns the volume, also without a name', async () => {
    const state = await stateOn('other-user', 1234);
    const own = join(folder, 'own-secret');
    await mkdir(own, { mode: 0o755 });
    await writeFile(join(own, 'portal-home.secret'), emulator.client_secret, { mode: 0o444 });
    await containers.start('other-user', {
      image: image(version()),
      options: [
        ...hubVariables(emulator),
        ...['--user', '1234:1234', '--volume', `${own}:/run/secrets:ro`, '--volume', `${state}:${STATE}`],
      ],
    });
    expect((await askHub(state, (control) => control.request('status'))).hub.name).toBe('Cellar hub');
    expect(await containers.remove('other-user')).toBe(0);
  });

  it("the doctor warns of an address in the container's own network, and accepts the host's address", async () => {
    await using lan = await createLan(['box']);
    const state = await stateOn('bridged');
    const network = ['--network', `ns:/run/netns/${lan.hosts.box.namespace}`, '--volume', `${state}:${STATE}`];
    const inOwnNetwork = async (name: string, address: string) => {
      await containers.start(
        name,
        hub([...network, '--env', `LATCHKEY_LAN_ADDRESS=${address}`, '--env', 'LATCHKEY_LAN_LISTEN=0.0.0.0']),
      );
      const { hub: found } = await askHub(state, (control) => control.request('status'));
      const { stdout } = await containers.podman('exec', name, 'latchkey', 'doctor', '--json');
      const checks = JSON.parse(stdout).checks as { name: string; result: string; detail: string }[];
      await containers.remove(name);
      return { address: found.address, check: (which: string) => checks.filter((one) => one.name.startsWith(which)) };
    };
    const isolated = await inOwnNetwork('isolated', 'auto');
    expect(isolated.check('network')).toEqual([
      {
        name: 'network',
        result: 'warn',
        detail: expect.stringMatching(
          /^10\.77\.0\.1 on eth0 is in this container's own network, so other devices probably can't reach it: start the container with "--network host", or publish the ports 0 and 0 and set lan\.address/,
        ),
      },
    ]);
    expect(isolated.check('mdns')).toEqual([
      {
        name: 'mdns',
        result: 'warn',
        detail: expect.stringContaining("mDNS does not leave this container's own network"),
      },
    ]);
    const published = await inOwnNetwork('published', '192.168.77.5');
    expect(published.address).toBe('192.168.77.5');
    expect(published.check('network')).toEqual([
      {
        name: 'network',
        result: 'ok',
        detail: expect.stringContaining('192.168.77.5, as set in lan.address: the host'),
      },
    ]);
    expect(published.check('ports').map(({ result }) => result)).toEqual(['warn', 'warn']);
  });

  it('the emulator stops at once on SIGTERM', async () => {
    await startEmulatorContainer(containers, `localhost/latchkey-emulator:${version()}`, 'second-emulator');
    expect(await containers.remove('second-emulator')).toBe(0);
    expect(await eventually(() => containers.podman('ps', '--all'))).toMatchObject({ status: 0 });
  });
});
