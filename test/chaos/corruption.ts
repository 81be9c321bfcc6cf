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

/** One way to damage a state directory. @returns what was done, for the report */
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
/** A database of which some can be read, one that is none, and one that is not there; and a journal and a copy without use. */
const SAMPLE: readonly Damage[] = [
  flipped('latchkey.db', 64),
  OVERWRITTEN,
  swapped('latchkey.db', 'ballast'),
  removed('latchkey.db'),
  emptied('latchkey.db-wal'),
  flipped('latchkey.db.copy', 64),
];
const LONG = 100;
/** The short form has the sample, and then goes on until every outcome was met, but not for longer than this. */
const MAX_SHORT = 30;

/**
 * Damages the state of a hub that was killed, and starts it on what is left. The portal takes older refresh tokens too, so
 * that a grant is lost only where the hub has lost it.
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
    for (const name of names) await hub.ask((control) => control.refresh(name));
  }
  await hub.kill('SIGKILL');
  cpSync(state, sound, { recursive: true, filter: (path) => !path.endsWith('.sock') });

  const broken: string[] = [];
  const counts = { recovered: 0, 'from the copy': 0, 'nothing amiss': 0 };
  const goesOn = (done: number) => {
    if (scale.long) return done < LONG;
    const metAll = Object.values(counts).every((count) => count > 0);
    return done < SAMPLE.length || (done < MAX_SHORT && !metAll);
  };
  // Each kind once before any comes twice.
  let kinds = scale.long ? [] : [...SAMPLE];
  let times = 0;
  for (; goesOn(times); times++) {
    // Of a file that was overwritten in one place most can be read.
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
      if (outcome === 'nothing amiss' || (!scale.long && counts[outcome] > 1)) continue;
      // What the hub has put right stays right.
      await hub.launch();
      broken.push(...(await lost(hub, names)).map((sentence) => `${what}, after another start: ${sentence}`));
      const again = await stopAndReadLog(hub, 'SIGTERM');
      if (again.includes('"event":"store_recovered"')) broken.push(`${what}: the store was put right twice`);
    } catch (error) {
      broken.push(`${what}: ${error instanceof Error ? error.message : String(error)}`);
      await hub.kill('SIGTERM');
    }
  }
  const figures = Object.entries(counts).map(([name, count]) => [`corruptions, ${name}`, count]);
  return { figures: { corruptions: times, ...Object.fromEntries(figures) }, broken };
}

function outcomeOf(log: string): 'from the copy' | 'recovered' | 'nothing amiss' {
  if (log.includes('perhaps used up')) return 'from the copy';
  return log.includes('"event":"store_recovered"') ? 'recovered' : 'nothing amiss';
}

/** The appliances whose grant does not work any more, in a sentence each. */
async function lost(hub: HubProcess, names: readonly string[]): Promise<string[]> {
  const sentences: string[] = [];
  for (const name of names) {
    try {
      const { state, problem } = await hub.ask((control) => control.refresh(name));
      if (state !== 'active') sentences.push(`${name} is ${state}: ${problem?.message}`);
    } catch (error) {
      sentences.push(`${name} has no grant any more: ${error instanceof Error ? error.message : String(error)}`);
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
