// The package in a tree in which no systemd runs, which is how images are built. With a running systemd: test/release/machine/.

import { execFile } from 'node:child_process';
import { chmodSync, chownSync, cpSync, mkdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { SCHEMA_VERSION } from '../../../src/store/sqlite/schema.ts';
import { scaleDeadline } from '../../support/deadlines.ts';
import { debian } from '../../support/machine.ts';
import { setUpOnce } from '../../support/set-up.ts';
import { stateFolder } from '../../support/state-folder.ts';
import { buildPackage } from '../machine/packages.ts';

const run = promisify(execFile);

/** How a command ended. */
interface ChrootResult {
  readonly status: number;
  /** Its output and its errors. */
  readonly output: string;
}

/** Why no Debian tree can be used here, or null if one can. */
async function chrootSkipReason(): Promise<string | null> {
  if (process.getuid?.() !== 0) return 'a chroot needs root';
  return debian().then(
    () => null,
    (error: { readonly stderr?: string }) => error.stderr?.trim().split('\n').at(-1) ?? String(error),
  );
}

/** A Debian tree in which nothing runs, as builders of images have it. Disposing of it deletes it. */
class Chroot implements AsyncDisposable {
  readonly #folder: string;
  readonly #lower: string;

  private constructor(folder: string, lower: string) {
    this.#folder = folder;
    this.#lower = lower;
  }

  static async make(): Promise<Chroot> {
    const folder = await mkdtemp(join(tmpdir(), 'latchkey-chroot-'));
    for (const part of ['upper', 'work', 'root']) await mkdir(join(folder, part));
    return new Chroot(folder, await debian());
  }

  /** The path on this machine of a file that was written in the tree. */
  path(file: string): string {
    return join(this.#folder, 'upper', file);
  }

  /**
   * Runs a shell script in the tree, three minutes at most.
   * @param files of this machine, which the script finds as /mnt/0, /mnt/1, …
   */
  async run(script: string, files: readonly string[] = []): Promise<ChrootResult> {
    const mounts = files.map((_, index) => `touch mnt/${index} && mount --bind "$${index + 4}" mnt/${index}`);
    const setUp = [
      'mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$2/root"',
      'cd "$2/root"',
      'mount -t proc proc proc',
      'mount -t tmpfs tmpfs mnt',
      ...mounts,
      'exec chroot . /bin/sh -c "$3" 2>&1',
    ];
    const args = ['--mount', 'sh', '-ec', setUp.join('\n'), 'chroot', this.#lower, this.#folder, script, ...files];
    // No locale, because the tree has none, and a temporary home for each script, because programs store files there.
    const env = {
      PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
      LC_ALL: 'C',
      HOME: '/mnt',
      DEBIAN_FRONTEND: 'noninteractive',
    };
    return run('unshare', args, { env, timeout: scaleDeadline(60_000), maxBuffer: 2 ** 24 }).then(
      ({ stdout }) => ({ status: 0, output: stdout }),
      (error: { readonly code?: number; readonly stdout?: string; readonly stderr?: string }) => ({
        status: typeof error.code === 'number' ? error.code : -1,
        output: `${error.stdout ?? ''}${error.stderr ?? ''}`,
      }),
    );
  }

  /** The same for a script that must not fail; returns its output. */
  async sh(script: string, files: readonly string[] = []): Promise<string> {
    const { status, output } = await this.run(script, files);
    if (status !== 0) throw new Error(`exit status ${status}: ${output}`);
    return output.trim();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }
}

const STATE = 'var/lib/private/latchkey';
/** A user id as systemd assigns to dynamic users. */
const OWNER = 61_234;

let tree: Chroot;
let debPackage: string;

setUpOnce(
  async (parts) => {
    debPackage = (await buildPackage()).path;
    tree = parts.use(await Chroot.make());
  },
  { skipReason: chrootSkipReason, timeout: scaleDeadline(120_000) },
);

describe('the package in an image that is being built', () => {
  it('the package in an image is installed, enabled for the first boot, and says what to do', async () => {
    const output = await tree.sh('dpkg -i /mnt/0', [debPackage]);
    expect(output).toMatch(/latchkey: the hub starts with this machine; then "sudo latchkey setup-code" shows/);
    expect(output.match(/^latchkey:/gm)).toHaveLength(1);
    const enabled = 'systemctl is-enabled latchkey.service latchkey.socket latchkey-emulator.service; true';
    expect((await tree.sh(enabled)).split('\n')).toEqual(['enabled', 'disabled', 'disabled']);
    expect(await tree.sh('getent group latchkey-admin')).toMatch(/^latchkey-admin:x:\d+:$/);
    const modes = await tree.sh('stat -c "%n %a %U:%G" /etc/latchkey /etc/latchkey/*');
    expect(modes.split('\n')).toEqual([
      '/etc/latchkey 755 root:root',
      '/etc/latchkey/credentials 700 root:root',
      '/etc/latchkey/latchkey.toml 644 root:root',
    ]);
    expect(await tree.sh('latchkey --version')).toMatch(/^\d+\.\d+\.\d+$/);
    expect(await tree.sh('dpkg --verify latchkey')).toBe('');
  });
});

describe('the preparation of an update', () => {
  const preinst = (action: string) =>
    tree.run(
      `dpkg-deb -e /mnt/0 /tmp/control && sh /tmp/control/preinst ${action}; status=$?; rm -r /tmp/control; exit $status`,
      [debPackage],
    );

  it('an update first copies the store with its WAL to a private database file', async () => {
    putStore(SCHEMA_VERSION);
    expect(await preinst('upgrade 0.0.9')).toEqual({ status: 0, output: '' });
    const copies = tree.path(`${STATE}/upgrades`);
    expect(statSync(copies)).toMatchObject({ uid: OWNER, gid: OWNER, mode: 0o40700 });
    const copy = join(copies, '0001-0.0.9.db');
    for (const file of [copy, `${copy}-wal`]) expect(statSync(file)).toMatchObject({ uid: OWNER, mode: 0o100600 });
    const database = new Database(copy);
    expect(database.prepare('SELECT word FROM words').pluck().all()).toEqual(['in the journal']);
    database.close();
  });

  it('updates keep at most three copies of the store, whatever the clock says', async () => {
    for (const version of ['0.1.0', '0.1.1', '0.1.2', '0.1.10']) await preinst(`upgrade ${version}`);
    const remaining = await tree.sh(`ls /${STATE}/upgrades | grep -v wal`);
    expect(remaining.split('\n')).toEqual(['0003-0.1.1.db', '0004-0.1.2.db', '0005-0.1.10.db']);
  });

  it('an update replaces nothing if the store can not be copied', async () => {
    rmSync(tree.path(`${STATE}/upgrades`), { recursive: true });
    writeFileSync(tree.path(`${STATE}/upgrades`), '');
    const { status, output } = await preinst('upgrade 0.1.0');
    expect(status).toBe(1);
    expect(output).toMatch(/latchkey: the store in \/var\/lib\/latchkey could not be copied, so nothing was replaced/);
    rmSync(tree.path(`${STATE}/upgrades`));
  });

  it('an update does not follow a link that the daemon might have put in place of the store', async () => {
    await tree.sh(
      `rm -r /${STATE}/*; echo secret >/root/secret; chmod 600 /root/secret; ln -s /root/secret /${STATE}/latchkey.db`,
    );
    const { status } = await preinst('upgrade 0.1.0');
    const read = await tree.run(`grep -rs secret /${STATE}/upgrades`);
    expect({ status, read: read.output }).toEqual({ status: 1, read: '' });
    await tree.sh(`rm -r /root/secret /${STATE}/*`);
  });

  it('an update is refused if the store has a newer schema, according to its journal', async () => {
    putStore(SCHEMA_VERSION + 1, true);
    const { status, output } = await tree.run('dpkg -i /mnt/0', [debPackage]);
    expect(status).not.toBe(0);
    const line = output.split('\n').filter((text) => text.startsWith('latchkey: '));
    expect(line).toEqual([
      expect.stringMatching(
        `^latchkey: the store has schema ${SCHEMA_VERSION + 1}, and .* knows schemas up to ${SCHEMA_VERSION}: nothing was changed`,
      ),
    ]);
    expect(await tree.sh('dpkg -s latchkey | grep ^Status:')).toBe('Status: install ok installed');
    expect(await tree.sh(`ls /${STATE}`)).not.toContain('upgrades');
  });
});

/** The store as a killed daemon leaves it; its row, and perhaps its schema, are only in the WAL. */
function putStore(schema: number, inJournal = false): void {
  using folder = stateFolder();
  const path = join(folder.path, 'latchkey.db');
  const link = tree.path('var/lib/latchkey');
  const state = tree.path(STATE);
  rmSync(state, { recursive: true, force: true });
  mkdirSync(state, { recursive: true, mode: 0o700 });
  using stack = new DisposableStack();
  const database = stack.adopt(new Database(path), (open) => open.close());
  database.pragma('journal_mode = WAL');
  database.pragma(`user_version = ${inJournal ? SCHEMA_VERSION : schema}`);
  database.exec('CREATE TABLE words (word TEXT)');
  database.pragma('wal_checkpoint(TRUNCATE)');
  if (inJournal) database.pragma(`user_version = ${schema}`);
  database.exec("INSERT INTO words VALUES ('in the journal')");
  for (const file of ['latchkey.db', 'latchkey.db-wal']) {
    const to = join(state, file);
    cpSync(join(folder.path, file), to);
    chmodSync(to, 0o600);
    chownSync(to, OWNER, OWNER);
  }
  chmodSync(tree.path('var/lib/private'), 0o700);
  chownSync(state, OWNER, OWNER);
  rmSync(link, { force: true });
  symlinkSync('private/latchkey', link);
}
