import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { scaleDeadline } from '../../support/deadlines.ts';
import { debian } from '../../support/machine.ts';

const run = promisify(execFile);

/** How a command ended. */
export interface ChrootResult {
  readonly status: number;
  /** Its output and its errors. */
  readonly output: string;
}

/** Why no Debian tree can be used here, or null if one can. */
export async function chrootSkipReason(): Promise<string | null> {
  if (process.getuid?.() !== 0) return 'a chroot needs root';
  return debian().then(
    () => null,
    (error: { readonly stderr?: string }) => error.stderr?.trim().split('\n').at(-1) ?? String(error),
  );
}

/** A Debian tree in which nothing runs, as builders of images have it. Disposing of it deletes it. */
export class Chroot implements AsyncDisposable {
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
