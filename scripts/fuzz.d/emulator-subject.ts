import { startFuzzed } from './emulator.ts';
import { fill } from './fill.ts';
import { fuzz, memoryText, only } from './run.ts';
import type { Subject } from './subject.ts';

/** A portal emulator of its own. */
export async function emulatorSubject(): Promise<Subject> {
  const { target, memory, ended, complaints, kill } = await startFuzzed();
  return {
    name: 'emulator',
    async fill() {
      await fill(target);
      return memoryText(await memory());
    },
    fuzz: (run) => fuzz(target, { ...run, memory }),
    only: (seed, number) => only(target, seed, number),
    ended,
    complaints,
    stop: async () => kill(),
  };
}
