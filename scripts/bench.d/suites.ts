import { spawnSync } from 'node:child_process';
import { emulatorSuite } from './emulator.ts';
import { handOutSuite } from './hand-out.ts';
import { memorySuite } from './memory.ts';
import { sdCardSuite } from './sd-card.ts';
import { slowCardSuite } from './slow-card.ts';
import { smallSuite } from './small.ts';
import type { Suite } from './suite.ts';

/** All suites, in the order in which they run and are reported. */
export const SUITES: readonly Suite[] = [
  handOutSuite,
  smallSuite,
  sdCardSuite,
  slowCardSuite,
  emulatorSuite,
  memorySuite,
];

/** The programs that suites need and this machine lacks, each with its Debian package. */
export function missingPrograms(suites: readonly Suite[]): { program: string; pack: string }[] {
  const needed = suites.flatMap(({ programs }) => Object.entries({ taskset: 'util-linux', ...programs }));
  return needed
    .filter(([program]) => spawnSync('sh', ['-c', 'command -v "$1"', 'sh', program]).status !== 0)
    .map(([program, pack]) => ({ program, pack }));
}
