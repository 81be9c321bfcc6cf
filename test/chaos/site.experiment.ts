import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../src/core/failure.ts';
import { lanSkipReason } from '../support/netns.ts';
import { postgresSkipReason } from '../support/postgres/cluster.ts';
import type { SeededRandom } from '../support/seeded-random.ts';
import { type Experiment, type ExperimentOptions, type ExperimentResult, SKIPPED } from './experiment.ts';
import { ChaosSite } from './site/chaos-site.ts';
import type { LoadCounts } from './site/load-messages.ts';
import { findDisagreement, LostGrants } from './site/lost-grants.ts';
import { auditSends, type Resend } from './site/send-audit.ts';
import { type DatabaseFault, SiteFaults } from './site/site-faults.ts';

/** What a run has left behind. */
interface SiteRun {
  readonly site: ChaosSite;
  readonly faults: SiteFaults;
  readonly lost: LostGrants;
  readonly counts: LoadCounts;
  /** How long faults were injected. */
  readonly seconds: number;
}

/** Judges a run by the portal's log of what it has received, and counts what happened. */
async function summarize({ site, faults, lost, counts, seconds }: SiteRun): Promise<ExperimentResult> {
  const { portalLog, faults: log, appliances } = site;
  const grants = await portalLog.grants();
  const resends = auditSends(
    portalLog.sends,
    [...log.faults, ...site.hubs.flatMap(({ outages }) => outages)],
    appliances.handOuts,
  );
  const revoked = new Set(grants.flatMap(({ id, revoked }) => (revoked ? [id] : [])));
  const paced = new Set(grants.flatMap(({ id, user }) => (user.startsWith('paced-') ? [id] : [])));
  const revokedByHubs = [...revoked].filter((id) => portalLog.wasRevoked(id)).length;
  const unexplainedTokens = appliances.rejected.filter(({ grant }) => !revoked.has(grant));
  const gaps = appliances.withoutToken.filter(({ appliance, from, to }) => !lost.wasLost(appliance, from, to));
  const longest = gaps.toSorted((one, other) => other.to - other.from - (one.to - one.from))[0];
  const events = countEvents(site.hubs.flatMap(({ logs }) => logs));
  const broken = [
    ...resends.filter(({ reason }) => reason === null).map(describeResend),
    ...lost.findUnexplained(grants, resends),
    ...unexplainedTokens.map(
      ({ appliance, hub, generation, at, status }) =>
        `${hub} issued a token (${generation}) to ${appliance} at ${time(at)} that the portal rejected with ${status}`,
    ),
    ...['refresh_crashed', 'crashed'].flatMap((event) =>
      (events.get(event) ?? 0) > 0 ? [`${event} was logged ${events.get(event)} times`] : [],
    ),
  ];
  const because = (reason: Resend['reason']) => resends.filter((resend) => resend.reason === reason).length;
  const { databaseFaults } = faults;
  return {
    figures: {
      'refreshes, each with a compressed answer': portalLog.refreshes,
      'refreshes a second': round(portalLog.refreshes / seconds),
      kills: log.count('killed'),
      pauses: log.count('paused'),
      'longest pause, s': round(Math.max(0, ...log.seconds('paused'))),
      'pauses longer than a lease': log.seconds('paused').filter((pause) => pause > 180).length,
      'partitions from the database': log.count('cut_from_database'),
      'partitions from the portal': log.count('cut_from_portal'),
      'partitions from appliances and hubs': log.count('cut_from_lan'),
      'database restarts': `${databaseFaults.fast} fast, ${databaseFaults.immediate} immediate, ${databaseFaults.kill} killed`,
      promotions: databaseFaults.promotion,
      'hubs added and removed': faults.guests,
      'attempts interrupted': events.get('refresh_interrupted') ?? 0,
      'answers lost': events.get('answer_lost') ?? 0,
      'tokens sent twice': resends.length,
      'of them that a hub could know of': because(null),
      'of them by a hub that was paused before the send': because('paused_before_send'),
      'after a kill': because('hub_killed'),
      'after a pause beyond the lease': because('hub_paused'),
      'after the answer was cut': because('answer_cut'),
      'grants revoked by the portal': revoked.size - revokedByHubs,
      'imports over a grant, each before a kill': site.imported.size,
      'unpairings during a refresh of another hub': faults.unpairings,
      'refreshes at a paced portal': portalLog.sends.filter(({ grant }) => paced.has(grant)).length,
      'refreshes refused by a firewall': faults.refusedByFirewall,
      'grants lost': lost.count,
      'tokens issued': counts.tokens,
      'of them tried': counts.tried,
      'could not be tried, the portal did not respond': counts.untried,
      'rejected, of revoked grants': appliances.rejected.length - unexplainedTokens.length,
      'rejected, of others': unexplainedTokens.length,
      'ended before they could be used': counts.ended,
      'longest time without a token, s': longest === undefined ? 0 : round((longest.to - longest.from) / 1000),
    },
    broken,
  };
}

function describeResend({ first, second }: Resend): string {
  const { grant, generation } = first;
  return `token ${generation} of grant ${grant} was sent by ${first.hub} at ${time(first.at)} (HTTP ${first.status}) and by ${second.hub} at ${time(second.at)} (HTTP ${second.status})`;
}

/** How often each event is in these logs. */
function countEvents(logs: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const log of logs) {
    for (const [, event = ''] of readFileSync(log, 'utf8').matchAll(/"event":"(\w+)"/g)) {
      counts.set(event, (counts.get(event) ?? 0) + 1);
    }
  }
  return counts;
}

function time(ms: number): string {
  return new Date(ms).toISOString().slice(11, 23);
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

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
  const lost = new LostGrants(site);
  const stop = new AbortController();
  const ended = new AbortController();
  const failures: unknown[] = [];
  const inBackground: Promise<void>[] = [];
  const start = (task: Promise<void>) =>
    inBackground.push(
      task.catch((error: unknown) => {
        failures.push(error);
        progress(`failed: ${messageOf(error)}`);
        stop.abort();
      }),
    );
  start(collect(site, ended.signal));
  try {
    await site.begin(load.every);
    start(lost.watch(load.interval, stop.signal));
    progress(`${site.connections.length} connections are paired`);
    const faults = new SiteFaults(site, stop.signal, progress);
    const began = performance.now();
    if (long) {
      const injecting = faults.run(random.whole(0, 999_999));
      await untilEnough({ ...options, signal: AbortSignal.any([options.signal, stop.signal]) }, site, lost);
      stop.abort();
      await injecting;
    } else {
      await injectEachFault(site, faults, random);
      stop.abort();
    }
    const seconds = (performance.now() - began) / 1000;
    progress('the faults have ended');
    if (failures.length > 0) throw failures[0];
    const broken = [...faults.broken, ...(await recover(site, lost))];
    progress('all connections are refreshed');
    broken.push(...(await findDisagreement(site)));
    const counts = await site.appliances.stop();
    ended.abort();
    await Promise.all(inBackground);
    if (failures.length > 0) throw failures[0];
    await site.portalLog.collect();
    const summary = await summarize({ site, faults, lost, counts, seconds });
    return { figures: summary.figures, broken: [...broken, ...summary.broken] };
  } finally {
    stop.abort();
    ended.abort();
    await Promise.all(inBackground);
  }
}

/** Reads the portal's log until the run is stopped. */
async function collect(site: ChaosSite, stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    await sleep(1000, undefined, { signal: stop }).catch(() => undefined);
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
