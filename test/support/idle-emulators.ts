import { type Emulator, type EmulatorClock, type EmulatorOptions, startEmulator } from '../../src/emulator/index.ts';
import { SETTINGS } from '../../src/emulator/settings/settings.ts';

/** An emulator that outlives the test that uses it: a reset costs a tenth of a start. */
interface ReusedEmulator {
  readonly emulator: Emulator;
  clock: EmulatorClock;
  /** The number of its secrets that were issued to earlier tests. */
  earlierSecrets: number;
}

const idle: ReusedEmulator[] = [];

/** An emulator for one test. */
export interface BorrowedEmulator extends AsyncDisposable {
  readonly emulator: Emulator;
  /** What it issued to this test. */
  secretsIssued(): string[];
}

/**
 * An emulator in the state of a new one, with the addresses and the client of an earlier one if `options` are only
 * settings. At disposal nothing may be sending requests to it any more.
 */
export async function borrowEmulator(
  clock: EmulatorClock,
  { ...options }: EmulatorOptions = {},
): Promise<BorrowedEmulator> {
  if (!Object.keys(options).every((name) => name in SETTINGS)) {
    const emulator = await startEmulator({ clock, ...options });
    return { emulator, secretsIssued: () => emulator.secretsIssued(), [Symbol.asyncDispose]: () => emulator.close() };
  }
  const reused = idle.pop() ?? (await startReused(clock));
  const { emulator } = reused;
  reused.clock = clock;
  emulator.change(options);
  return {
    emulator,
    secretsIssued: () => emulator.secretsIssued().slice(reused.earlierSecrets),
    async [Symbol.asyncDispose]() {
      await emulator.reset();
      reused.earlierSecrets = emulator.secretsIssued().length;
      idle.push(reused);
    },
  };
}

async function startReused(clock: EmulatorClock): Promise<ReusedEmulator> {
  const current = { clock, earlierSecrets: 0 };
  const emulator = await startEmulator({ clock: { now: () => current.clock.now() } });
  return Object.assign(current, { emulator });
}
