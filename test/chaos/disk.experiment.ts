import type { Emulator } from '../../src/emulator/index.ts';
import { countRefreshSends, pairFleet } from '../reliability/fleet.ts';
import { TokenLoad } from '../reliability/load.ts';
import { SmallDisk } from '../reliability/small-disk.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { startPortal } from '../support/portal.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { runCorruptions } from './corruption.ts';
import { stopAndReadLog, unexpectedLines } from './disk-messages.ts';
import { type Experiment, type ExperimentOptions, type ExperimentResult, mergeResults } from './experiment.ts';

/** In seconds. */
const TOKEN_LIFETIME = 6;

export const experiment: Experiment = {
  name: 'Disk',
  promise:
    'A disk that is full, turns read-only or damages the database costs no grant that was on it, in the database or its snapshot. Meanwhile the hub issues current tokens, and its log has only known events.',
  async run(scale, random) {
    // In parallel, because the parts mostly wait, each with its own hub and seed.
    const parts = [fullDisk, readOnly, runCorruptions];
    const seeds = parts.map(() => random.whole(1, 1_000_000_000));
    return mergeResults(
      await Promise.all(parts.map((part, index) => part(scale, new SeededRandom(seeds[index] ?? 0)))),
    );
  },
};

/** A 2 MB disk becomes full during rotations. The portal accepts no refresh token twice. */
async function fullDisk(scale: ExperimentOptions, random: SeededRandom): Promise<ExperimentResult> {
  const rounds = scale.long ? 20 : 2;
  await using home = await smallHome('tmpfs', scale, 0);
  if (home === null) return skipped('full disk');
  const { hub, emulator, disk, names } = home;
  const broken: string[] = [];
  let reported = 0;
  for (let round = 1; round <= rounds; round++) {
    scale.progress(`full disk, round ${round} of ${rounds}`);
    await pause(random.whole(500, 4000));
    disk.fill();
    reported += await reportedProblems(scale, hub, () => pause(random.whole(2000, 9000)));
    disk.makeRoom();
    if (round % 2 === 0) {
      broken.push(...unexpectedLines(await stopAndReadLog(hub, 'SIGTERM')));
      await hub.launch();
    }
    broken.push(...(await notActive(hub, names, `after a full disk (round ${round})`)));
  }
  const twice = countRefreshSends(emulator).filter(({ sends }) => sends > 1).length;
  if (twice > 0) broken.push(`${twice} refresh tokens were sent more than once because of a full disk`);
  broken.push(...home.rejectedTokens(), ...unexpectedLines(await stopAndReadLog(hub, 'SIGTERM')));
  const { figures } = home;
  return {
    figures: { 'full disk, rounds': rounds, 'full disk, problems reported': reported, ...figures('full disk') },
    broken,
  };
}

/** An SD card fails and becomes read-only during rotations, a hub starts on it, and the card is repaired. */
async function readOnly(scale: ExperimentOptions, random: SeededRandom): Promise<ExperimentResult> {
  const rounds = scale.long ? 5 : 1;
  const broken: string[] = [];
  let reported = 0;
  const figures: Record<string, string | number> = { 'read-only, rounds': rounds };
  for (let round = 1; round <= rounds; round++) {
    scale.progress(`read-only, round ${round} of ${rounds}`);
    await using home = await smallHome('ext4', scale, 1000);
    if (home === null) return skipped('read-only');
    const { hub, disk, names } = home;
    await pause(random.whole(500, 6000));
    disk.breakDown();
    reported += await reportedProblems(scale, hub, () => pause(random.whole(2000, 8000)));
    broken.push(...unexpectedLines(await stopAndReadLog(hub, random.pick(['SIGTERM', 'SIGKILL']))));
    await hub.launch();
    // The hub now has no control socket, but responds to appliances.
    const before = home.responses();
    await eventually(async () => home.responses() >= before + 2 * names.length);
    broken.push(...unexpectedLines(await stopAndReadLog(hub, 'SIGTERM')));
    disk.repair();
    await hub.launch();
    broken.push(...(await notActive(hub, names, `after a read-only disk (round ${round})`)));
    broken.push(...home.rejectedTokens(), ...unexpectedLines(await stopAndReadLog(hub, 'SIGTERM')));
    for (const [name, count] of Object.entries(home.figures('read-only'))) {
      figures[name] = Number(figures[name] ?? 0) + count;
    }
  }
  figures['read-only, problems reported'] = reported;
  return { figures, broken };
}

/**
 * The number of appliances with the problem `store_unwritable`. The short form waits for at least one.
 * @param pass lets time pass in the long form
 */
async function reportedProblems(
  { long }: ExperimentOptions,
  hub: HubProcess,
  pass: () => Promise<void>,
): Promise<number> {
  const unwritable = async () => {
    const { appliances } = await hub.status();
    return appliances.filter(({ problem }) => problem?.code === 'store_unwritable').length;
  };
  if (!long) return eventually(async () => (await unwritable()) || null, 4 * TOKEN_LIFETIME);
  await pass();
  return unwritable();
}

/** One sentence for each appliance that does not become active within three token lifetimes. */
async function notActive(hub: HubProcess, names: readonly string[], when: string): Promise<string[]> {
  const broken: string[] = [];
  for (const name of names) {
    await hub
      .until(name, ({ state }) => state === 'active', 3 * TOKEN_LIFETIME)
      .catch(async () => {
        const status = (await hub.ask((control) => control.request('status'))).appliances.find(
          (one) => one.name === name,
        );
        broken.push(`${name} is ${status?.state} ${when}: ${status?.problem?.message}`);
      });
  }
  return broken;
}

function skipped(part: string): ExperimentResult {
  return { figures: { [part]: 'skipped: needs root and the permission to mount' }, broken: [] };
}

/** A hub with appliances that request tokens, on a small disk; null if nothing can be mounted. */
async function smallHome(kind: 'tmpfs' | 'ext4', { long }: ExperimentOptions, refreshGrace: number) {
  await using parts = new AsyncDisposableStack();
  const emulator: Emulator = parts.use(await startPortal({ tokenLifetime: TOKEN_LIFETIME, refreshGrace }));
  const hub = parts.use(await HubProcess.prepare({ emulator }));
  const disk = SmallDisk.mount(hub, kind);
  if (disk === null) return null;
  parts.use(disk);
  await hub.launch();
  const names = Array.from({ length: long ? 20 : 3 }, (_, index) => `appliance-${index + 1}`);
  const load = parts.use(
    await TokenLoad.start(hub, emulator, await pairFleet(hub, emulator, names), long ? 250 : 1000),
  );
  const running = parts.move();
  return {
    hub,
    emulator,
    disk,
    names,
    /** One sentence for each issued token that the portal rejected. */
    rejectedTokens(): string[] {
      return load.refused.map(({ appliance }) => `${appliance} got a token that the portal rejected`);
    },
    responses: () => load.handOuts.length + load.refusals.length,
    figures: (part: string) => ({
      [`${part}, tokens issued`]: load.handOuts.length,
      [`${part}, refreshes`]: countRefreshSends(emulator).length,
    }),
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
