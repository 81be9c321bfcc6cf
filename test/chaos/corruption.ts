import {
  chmodSync,
  copyFileSync,
  cpSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { pairFleet } from '../reliability/fleet.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { startPortal } from '../support/portal.ts';
import type { SeededRandom } from '../support/seeded-random.ts';
import { stopAndReadLog, unexpectedLines } from './disk-messages.ts';
import type { ExperimentOptions, ExperimentResult } from './experiment.ts';

/** Damages a state directory. @returns a description for the report */
type Damage = (state: string, random: SeededRandom) => string;

const OVERWRITTEN = overwritten('latchkey.db', 0);
const DAMAGES: readonly Damage[] = [
  flipped('latchkey.db', 1),
  flipped('latchkey.db', 64),
  flipped('latchkey.db-wal', 1),
  flipped('latchkey.db-wal', 64),
  truncated('latchkey.db'),
  truncated('latchkey.db-wal'),
  OVERWRITTEN,
  overwritten('latchkey.db', 0xa5),
  overwritten('latchkey.db-wal', 0),
  emptied('latchkey.db'),
  emptied('latchkey.db-wal'),
  removed('latchkey.db'),
  removed('latchkey.db-wal'),
  swapped('latchkey.db', 'latchkey.db-wal'),
  swapped('latchkey.db', 'latchkey.db.copy'),
  swapped('latchkey.db', 'ballast'),
  swapped('latchkey.db-wal', 'ballast'),
  flipped('latchkey.db.copy', 64),
  emptied('latchkey.db.copy'),
];
/** A partly readable database, a file that is no database, a missing one, and an unusable WAL and snapshot. */
const SAMPLE: readonly Damage[] = [
  flipped('latchkey.db', 64),
  OVERWRITTEN,
  swapped('latchkey.db', 'ballast'),
  removed('latchkey.db'),
  emptied('latchkey.db-wal'),
  flipped('latchkey.db.copy', 64),
];
const LONG = 100;
/** The short form runs the sample, and then continues until every outcome has occurred, or up to this number. */
const MAX_SHORT = 30;

/**
 * Damages the state of a killed hub, and starts it with what is left. The portal also accepts older refresh tokens, so
 * that a grant is lost only if the hub loses it.
 */
export async function runCorruptions(scale: ExperimentOptions, random: SeededRandom): Promise<ExperimentResult> {
  const names = ['cellar', 'roof', 'garage'];
  await using emulator = await startPortal({ tokenLifetime: 3600, refreshGrace: 100_000 });
  await using hub = await HubProcess.start({ emulator });
  const state = join(hub.directory, 'state');
  const sound = join(hub.directory, 'sound');
  await pairFleet(hub, emulator, names);
  await eventually(async () => readdirSync(state).includes('latchkey.db.copy'));
  for (let round = 0; round < 6; round++) {
    for (const name of names) await hub.ask((control) => control.request('refresh', { name }));
  }
  await hub.kill('SIGKILL');
  cpSync(state, sound, { recursive: true, filter: (path) => !path.endsWith('.sock') });

  const broken: string[] = [];
  const counts = { recovered: 0, 'recovered from the snapshot': 0, 'no recovery needed': 0 };
  const continues = (done: number) => {
    if (scale.long) return done < LONG;
    const metAll = Object.values(counts).every((count) => count > 0);
    return done < SAMPLE.length || (done < MAX_SHORT && !metAll);
  };
  // Each kind occurs once before any occurs twice.
  let kinds = scale.long ? [] : [...SAMPLE];
  let times = 0;
  for (; continues(times); times++) {
    // Most of a file that was overwritten in one place can be read.
    if (kinds.length === 0) kinds = scale.long ? shuffled(DAMAGES, random) : [OVERWRITTEN];
    rmSync(state, { recursive: true });
    cpSync(sound, state, { recursive: true });
    chmodSync(state, 0o700);
    const what = kinds.pop()?.(state, random) ?? '';
    scale.progress(`corruption ${times + 1}: ${what}`);
    try {
      await hub.launch();
      broken.push(...(await lost(hub, names)).map((sentence) => `${what}: ${sentence}`));
      const log = await stopAndReadLog(hub, 'SIGTERM');
      const outcome = outcomeOf(log);
      counts[outcome] += 1;
      broken.push(...unexpectedLines(log).map((sentence) => `${what}: ${sentence}`));
      if (outcome === 'no recovery needed' || (!scale.long && counts[outcome] > 1)) continue;
      // A recovered store must stay sound.
      await hub.launch();
      broken.push(...(await lost(hub, names)).map((sentence) => `${what}, after another start: ${sentence}`));
      const again = await stopAndReadLog(hub, 'SIGTERM');
      if (again.includes('"event":"store_recovered"')) broken.push(`${what}: the store was recovered twice`);
    } catch (error) {
      broken.push(`${what}: ${error instanceof Error ? error.message : String(error)}`);
      await hub.kill('SIGTERM');
    }
  }
  const figures = Object.entries(counts).map(([name, count]) => [`corruptions, ${name}`, count]);
  return { figures: { corruptions: times, ...Object.fromEntries(figures) }, broken };
}

function outcomeOf(log: string): 'recovered from the snapshot' | 'recovered' | 'no recovery needed' {
  if (log.includes('may be used up')) return 'recovered from the snapshot';
  return log.includes('"event":"store_recovered"') ? 'recovered' : 'no recovery needed';
}

/** One sentence for each appliance whose grant no longer works. */
async function lost(hub: HubProcess, names: readonly string[]): Promise<string[]> {
  const sentences: string[] = [];
  for (const name of names) {
    try {
      const { state, problem } = await hub.ask((control) => control.request('refresh', { name }));
      if (state !== 'active') sentences.push(`${name} is ${state}: ${problem?.message}`);
    } catch (error) {
      sentences.push(`${name} has lost its grant: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  return sentences;
}

function flipped(name: string, count: number): Damage {
  return change(`${count} bytes changed in ${name}`, name, (bytes, random) => {
    for (let number = 0; number < count; number++) {
      const at = random.whole(0, bytes.length - 1);
      bytes[at] = (bytes[at] ?? 0) ^ random.whole(1, 255);
    }
  });
}

function overwritten(name: string, byte: number): Damage {
  return change(`a range of ${name} overwritten with ${byte}`, name, (bytes, random) => {
    const start = random.whole(0, bytes.length - 1);
    bytes.fill(byte, start, Math.min(bytes.length, start + random.whole(1, 8192)));
  });
}

function change(what: string, name: string, act: (bytes: Buffer, random: SeededRandom) => void): Damage {
  return (state, random) => {
    const bytes = readFileSync(join(state, name));
    if (bytes.length > 0) act(bytes, random);
    writeFileSync(join(state, name), bytes, { mode: 0o600 });
    return what;
  };
}

function truncated(name: string): Damage {
  return (state, random) => {
    const size = readFileSync(join(state, name)).length;
    const left = random.whole(0, Math.max(0, size - 1));
    truncateSync(join(state, name), left);
    return `${name} truncated to ${left} of ${size} bytes`;
  };
}

function emptied(name: string): Damage {
  return (state) => {
    truncateSync(join(state, name), 0);
    return `${name} emptied`;
  };
}

function removed(name: string): Damage {
  return (state) => {
    rmSync(join(state, name));
    return `${name} removed`;
  };
}

function swapped(one: string, other: string): Damage {
  return (state) => {
    const [a, b] = [join(state, one), join(state, other)];
    copyFileSync(a, `${a}.swap`);
    copyFileSync(b, a);
    copyFileSync(`${a}.swap`, b);
    rmSync(`${a}.swap`);
    return `${one} and ${other} swapped`;
  };
}

function shuffled<Item>(items: readonly Item[], random: SeededRandom): Item[] {
  const rest = [...items];
  return Array.from({ length: items.length }, () => rest.splice(random.whole(0, rest.length - 1), 1)).flat();
}
