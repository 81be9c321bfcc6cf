import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SHARED_CACHE } from './program.ts';

const SOURCE = join(import.meta.dirname, 'slow-syncs.c');

/** Whether this machine can build the library: Debian's gcc and libc6-dev. */
export function canSlowSyncs(): boolean {
  return spawnSync('cc', ['--version']).status === 0;
}

/** Each sync (fsync, fdatasync) of a program takes longer, as on a worn SD card. */
export class SlowSyncs {
  readonly #file: string;
  /** The environment of the program. */
  readonly env: Readonly<Record<string, string>>;

  /** @param folder for a file with the duration */
  constructor(folder: string) {
    this.#file = join(folder, 'sync-duration');
    this.env = { LD_PRELOAD: builtLibrary(), LATCHKEY_TEST_SYNC_DURATION: this.#file };
    this.setDuration(0);
  }

  /** Sets how much longer each following sync takes, in ms. */
  setDuration(duration: number): void {
    writeFileSync(this.#file, String(duration));
  }
}

/** Builds the library if `.cache/` does not have it yet. @returns its path */
function builtLibrary(): string {
  const version = createHash('sha256').update(readFileSync(SOURCE)).digest('hex').slice(0, 8);
  const library = join(SHARED_CACHE, `slow-syncs-${version}-${process.arch}.so`);
  if (!existsSync(library)) {
    mkdirSync(SHARED_CACHE, { recursive: true });
    const unfinished = `${library}.${process.pid}`;
    execFileSync('cc', ['-shared', '-fPIC', '-O2', '-o', unfinished, SOURCE, '-ldl']);
    renameSync(unfinished, library);
  }
  return library;
}
