import { execFileSync } from 'node:child_process';
import { chmodSync, closeSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import type { HubProcess } from '../support/hub-process.ts';

/** A disk of a few MB for a hub's state directory. It can be filled, or turned read-only by a fault. */
export class SmallDisk implements AsyncDisposable {
  readonly #hub: HubProcess;
  readonly #path: string;
  /** Undoes what was set up, in order. */
  readonly #undo: (() => void)[] = [];
  #device = 'tmpfs';
  #image = '';

  private constructor(hub: HubProcess) {
    this.#hub = hub;
    this.#path = join(hub.directory, 'state');
  }

  /**
   * Mounts a disk. The hub must not have been started yet.
   * @param kind `tmpfs` can be filled, `ext4` can also have a fault
   * @returns null if this user may not mount
   */
  static mount(hub: HubProcess, kind: 'tmpfs' | 'ext4'): SmallDisk | null {
    const disk = new SmallDisk(hub);
    try {
      if (kind === 'ext4') disk.#makeDevice();
      disk.#attach();
      return disk;
    } catch {
      disk.#takeDown();
      return null;
    }
  }

  /** Fills the disk. */
  fill(): void {
    const file = openSync(join(this.#path, 'filler'), 'a');
    try {
      for (const size of [65_536, 1024, 1]) writeWhileItFits(file, Buffer.alloc(size, 'x'));
    } finally {
      closeSync(file);
    }
  }

  makeRoom(): void {
    rmSync(join(this.#path, 'filler'));
  }

  /** Makes the disk read-only, or writable again. No file on it may be open for writing. */
  protect(readOnly: boolean): void {
    run('mount', '-o', `remount,${readOnly ? 'ro' : 'rw'}`, this.#path);
  }

  /** Triggers a fault of the file system, as of a failing SD card, which makes it read-only. */
  breakDown(): void {
    writeFileSync(`/sys/fs/ext4/${basename(this.#device)}/trigger_fs_error`, 'test');
  }

  /**
   * Repairs a broken disk. The hub must not run. The repair uses a copy of the disk, because a mount namespace that
   * another process created meanwhile may keep the device in use.
   */
  repair(): void {
    this.#undo.shift()?.();
    run('sync', '--file-system', this.#image);
    const copy = `${this.#image}.repaired`;
    run('cp', this.#image, copy);
    try {
      run('e2fsck', '-f', '-y', copy);
    } catch (error) {
      // Status 1: errors were found and corrected.
      if (!(error instanceof Error && 'status' in error && error.status === 1)) throw error;
    }
    this.#insert(copy);
    this.#attach();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#hub.kill('SIGKILL');
    this.#takeDown();
  }

  #makeDevice(): void {
    const folder = mkdtempSync(join(tmpdir(), 'latchkey-disk-'));
    this.#undo.unshift(() => rmSync(folder, { recursive: true }));
    const image = join(folder, 'image');
    run('truncate', '-s', '16M', image);
    run('mkfs.ext4', '-q', '-b', '4096', image);
    this.#insert(image);
  }

  #insert(image: string): void {
    const device = run('losetup', '--find', '--show', image).trim();
    this.#image = image;
    this.#device = device;
    this.#undo.unshift(() => run('losetup', '--detach', device));
  }

  #attach(): void {
    // The name contains the process id for scripts/test.d/leftovers.ts.
    if (this.#device === 'tmpfs') run('mount', '-t', 'tmpfs', '-o', 'size=2m', `latchkey-${process.pid}`, this.#path);
    else run('mount', '-o', 'errors=remount-ro', this.#device, this.#path);
    this.#undo.unshift(() => run('umount', this.#path));
    chmodSync(this.#path, 0o700);
  }

  #takeDown(): void {
    for (const undo of this.#undo.splice(0)) undo();
  }
}

function run(program: string, ...args: string[]): string {
  return execFileSync(program, args, { encoding: 'utf8', stdio: 'pipe' });
}

function writeWhileItFits(file: number, piece: Buffer): void {
  try {
    while (writeSync(file, piece) === piece.length);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error;
  }
}
