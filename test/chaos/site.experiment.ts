import { setTimeout as sleep } from 'node:timers/promises';
import { lanSkipReason } from '../support/netns.ts';
import { postgresSkipReason } from '../support/postgres/cluster.ts';
import type { SeededRandom } from '../support/seeded-random.ts';
import { type Experiment, type ExperimentOptions, type ExperimentResult, SKIPPED } from './experiment.ts';
import { ChaosSite } from './site/chaos-site.ts';
import { findDisagreement, LostGrants } from './site/lost-grants.ts';
import { type DatabaseFault, SiteFaults } from './site/site-faults.ts';
import { summarize } from './site/site-figures.ts';

/** The long form ends after this number of refreshes, or after this time in minutes. */
const [LONG_REFRESHES, LONG_MINUTES] = [100_000, 150];
const LONG_LOAD = { connections: 900, paced: 12, tokenLifetime: 45, every: 30_000, interval: 10_000 };
const SHORT_LOAD = { connections: 4, paced: 2, tokenLifetime: 10, every: 1000, interval: 1000 };
/** By then everything has recovered that can, in seconds: a lease has ended, and the backoff after it. */
const RECOVERY = 300;

export const experiment: Experiment = {
  name: 'A site',
  promise:
    'Three hubs on one PostgreSQL database send no refresh token twice that one of them could know of, lose no grant that they need not lose, and issue only tokens that work, while hubs are killed, paused, cut off, added and removed, and the database is restarted and replaced by its synchronous standby.',
  async run(options, random) {
    const reason = postgresSkipReason() ?? (await lanSkipReason(['/usr/sbin/nft']));
    if (reason !== null) return { figures: { [SKIPPED]: reason }, broken: [] };
    return run(options, random);
  },
};

async function run(options: ExperimentOptions, random: SeededRandom): Promise<ExperimentResult> {
  const { long, progress } = options;
  const load = long ? LONG_LOAD : SHORT_LOAD;
  await using site = await ChaosSite.start(load);
  progress('all hubs run');
  await site.begin(load.every);
  progress(`${site.connections.length} connections are paired`);
  const lost = new LostGrants(site);
  const stop = new AbortController();
  const ended = new AbortController();
  const faults = new SiteFaults(site, stop.signal, progress);
  const began = performance.now();
  const background = [lost.watch(load.interval, stop.signal), collect(site, ended.signal)];
  // Awaited at the end; until then a failure is no unhandled rejection.
  const inBackground = Promise.all(background).catch((error: unknown) => ({ error }));
  try {
    if (long) {
      const injecting = faults.run(random.whole(0, 999_999));
      await untilEnough(options, site, lost);
      stop.abort();
      await injecting;
    } else {
      await injectEachFault(site, faults, random);
      stop.abort();
    }
    const seconds = (performance.now() - began) / 1000;
    progress('the faults have ended');
    const broken = [...faults.broken, ...(await recover(site, lost))];
    progress('all connections are refreshed');
    broken.push(...(await findDisagreement(site)));
    const counts = await site.appliances.stop();
    ended.abort();
    const failure = await inBackground;
    if ('error' in failure) throw failure.error;
    await site.portalLog.collect();
    const summary = await summarize({ site, faults, lost, counts, seconds });
    return { figures: summary.figures, broken: [...broken, ...summary.broken] };
  } finally {
    stop.abort();
    ended.abort();
    await inBackground;
  }
}

/** Reads the portal's log until the run is stopped. */
async function collect(site: ChaosSite, stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    await sleep(3000, undefined, { signal: stop }).catch(() => undefined);
    await site.portalLog.collect();
  }
}

async function untilEnough(options: ExperimentOptions, site: ChaosSite, lost: LostGrants): Promise<void> {
  const { signal, minutes = LONG_MINUTES, progress } = options;
  const end = performance.now() + minutes * 60_000;
  while (performance.now() < end && site.portalLog.refreshes < LONG_REFRESHES && !signal.aborted) {
    await sleep(15_000, undefined, { signal }).catch(() => undefined);
    if (!signal.aborted) progress(`${site.portalLog.refreshes} refreshes, ${lost.count} grants lost`);
  }
}

/** One fault of each kind, some of them at once. */
async function injectEachFault(site: ChaosSite, faults: SiteFaults, random: SeededRandom): Promise<void> {
  const [one, two, three] = shuffle(site.hubs, random);
  if (one === undefined || two === undefined || three === undefined) throw new Error('a site has three hubs');
  const restarts = shuffle<DatabaseFault>(['fast', 'immediate', 'kill'], random);
  const [first = 'fast', second = 'immediate', third = 'kill'] = restarts;
  await faults.unpair();
  const guest = faults.guest(8);
  await Promise.all([faults.kill(one, 2, random), faults.pause(two, 5), faults.harmDatabase(first)]);
  const firewall = faults.blockPortal(10);
  await Promise.all([faults.cut(three, 'database', 5), faults.cut(one, 'portal', 5), faults.cut(two, 'lan', 5)]);
  await faults.harmDatabase('promotion');
  await firewall;
  for (const restart of [second, third]) {
    await sleep(2000);
    await faults.harmDatabase(restart);
  }
  await guest;
}

/** Waits until no connection has a problem. @returns those that still have one */
async function recover(site: ChaosSite, lost: LostGrants): Promise<string[]> {
  const deadline = performance.now() + RECOVERY * 1000;
  for (;;) {
    await lost.repair();
    await site.portalLog.collect();
    const problems: string[] = [];
    for (const { name: hub, process, isUp } of site.hubs) {
      if (!isUp) return [`${hub} has ended by itself: ${process.ended}`];
      const { connections } = await process.status();
      for (const { name, state, problem } of connections.filter(({ name }) => site.connections.includes(name))) {
        if (state !== 'active' || problem !== null)
          problems.push(`${hub}: ${name} is ${state} after the end: ${problem?.message}`);
      }
    }
    if (problems.length === 0 || performance.now() > deadline) return problems.slice(0, 20);
    await sleep(1000);
  }
}

function shuffle<Item>(items: readonly Item[], random: SeededRandom): Item[] {
  return items
    .map((item) => ({ item, key: random.fraction() }))
    .toSorted((one, other) => one.key - other.key)
    .map(({ item }) => item);
}
