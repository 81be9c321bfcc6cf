import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../../../src/system/clock.ts';
import { postgresSkipReason } from '../../../test/support/postgres/cluster.ts';
import type { PostgresServer } from '../../../test/support/postgres/server.ts';
import { rowTable } from '../benchmarks-page.ts';
import { runLoad, tokenRequest } from '../load.ts';
import { type PermissivePortal, startPermissivePortal } from '../permissive-portal.ts';
import { cpuTime, LOAD_CORE, pinThisProcess, residentMemory } from '../program.ts';
import { median, quantile, ratioOf } from '../statistics.ts';
import {
  absoluteTarget,
  type BenchOptions,
  type BenchSubject,
  findMeasurement,
  type Measurement,
  MeasurementCollector,
  type Report,
  ratioTarget,
  runRounds,
  type Suite,
} from '../suite.ts';
import { type HubGroup, hubsCpu, startSingleHub, startSite } from './bench-site.ts';
import { NewTokenWatch } from './new-tokens.ts';
import { SiteDatabase, serverCpu, serverMemory, startBenchServer } from './site-database.ts';

/** The lifetime of access tokens, in ms: so long that no grant is due twice. */
const LIFETIME = 12 * 3_600_000;
/** The time between two refreshes if ten thousand grants are due within an hour, in ms. */
const APART = 3_600_000 / 10_000;
/** Connections of the load of token requests. */
const CHAINS = 16;
/** The time from the end of the single refreshes until all other grants are due, in ms. */
const MARGIN = 4000;
/** Of the grants that are due at once, these shares are refreshed before refreshes are counted, and until then. */
const COUNTED = { from: 0.05, to: 0.9 };
/** How long after the start of the last hub each one knows the others, and what follows a start has ended, in ms. */
const SETTLE = 6000;

/**
 * `setUp` is the time until the first grant is due, of which `start` is for each hub, in s. It is doubled for a machine
 * that takes longer, and follows what the rounds before have taken. `single` is how many grants are refreshed one after
 * another. `warmUp` and `seconds` are those of the token requests, `counted` is how long refreshes are counted at most,
 * in s.
 */
const FULL = {
  ...{ rounds: 3, hubs: [1, 2, 3, 5], grants: 10_000 },
  ...{ setUp: 30, start: 4, single: 40, warmUp: 1, seconds: 4, counted: 8 },
};
const QUICK: typeof FULL = {
  ...{ rounds: 1, hubs: [3], grants: 100 },
  ...{ setUp: 6, start: 1.5, single: 3, warmUp: 0.1, seconds: 0.5, counted: 2 },
};

const SQLITE = 'one hub, SQLite';
const siteOf = (hubs: number) => (hubs === 1 ? 'one hub, PostgreSQL' : `${hubs} hubs, PostgreSQL`);
const ROWS = [SQLITE, ...FULL.hubs.map(siteOf)];

const START = 'start of a hub';
const IDLE = 'resident memory after the start';
const IDLE_OWN = `${IDLE}, anonymous`;
const LOADED = 'resident memory after the load';
const LOADED_OWN = `${LOADED}, anonymous`;
const SERVER_MEMORY = 'memory of the server';
const TOKENS = 'token requests at one hub';
const TOKENS_CPU = 'CPU time of a token request';
const REFRESHES = 'refreshes';
const HUBS_CPU = 'CPU time of all hubs for a refresh';
const SERVER_CPU = 'CPU time of the server for a refresh';
const STATEMENTS = 'statements';
const COMMITS = 'commits';
const CHANGES = 'rows of changes';
const WAL = 'WAL';
const READS = 'reads by each other hub';
const BACKGROUND = 'other statements of each hub';
const FIRST_P50 = 'from the portal to the hub that refreshes, p50';
const FIRST_WORST = 'from the portal to the hub that refreshes, worst';
const OTHERS_P50 = 'from there to each other hub, p50';
const OTHERS_P99 = 'from there to each other hub, p99';
const OTHERS_WORST = 'from there to each other hub, worst';

/** Hubs with ten thousand connections: one on SQLite, and sites of one to five hubs on PostgreSQL. */
export const siteSuite: Suite = {
  name: 'site',
  title: 'A site: several hubs on one database',
  programs: {},
  skipReason: postgresSkipReason,
  measure,
  report,
};

/** One of the compared groups of hubs. */
interface Turn {
  readonly row: string;
  readonly subject: BenchSubject;
  /** 0: a hub on SQLite. */
  readonly hubs: number;
}

async function measure({ quick, subjects, scratch, progress }: BenchOptions): Promise<Measurement[]> {
  const plan = quick ? QUICK : FULL;
  const measured = new MeasurementCollector();
  // The server and the portal, too, are not on the core of the hubs.
  using _pinned = pinThisProcess(LOAD_CORE);
  await using server = await startBenchServer();
  const directory = join(scratch, 'site');
  mkdirSync(directory, { mode: 0o700 });
  const database = await SiteDatabase.create(server, directory);
  await using portal = await startPermissivePortal(LIFETIME);
  // Another revision may have no sites, or another schema of them.
  const sites = subjects.length > 1 ? [] : plan.hubs;
  const turns: Turn[] = [
    ...subjects.map((subject) => ({ row: SQLITE, subject, hubs: 0 })),
    ...sites.map((hubs) => ({ row: siteOf(hubs), subject: subjects[0], hubs })),
  ];
  const setUps = new Map<Turn, number>();
  await runRounds(plan.rounds, turns, async (turn, round) => {
    progress(`site: ${turn.subject.name}, ${turn.row}, round ${round + 1} of ${plan.rounds}`);
    const add = (what: string, unit: string, value: number, better?: 'more' | 'less') =>
      measured.add(`${turn.row}: ${what}`, turn.subject.name, unit, value, better);
    let setUp = setUps.get(turn) ?? plan.setUp + plan.start * turn.hubs;
    for (; !(await measureTurn(turn)); setUp *= 2) progress(`site: not ready after ${setUp.toFixed()} s; again`);

    /** @returns false if the grants were due before the hubs were ready */
    async function measureTurn({ subject, hubs }: Turn): Promise<boolean> {
      const began = bootTime();
      const begin = began + 1000 * setUp;
      const allDue = begin + plan.single * APART + MARGIN;
      const dueAt = Array.from({ length: plan.grants }, (_, index) =>
        index < plan.single ? begin + index * APART : allDue,
      );
      const options = { subject, portal, lifetime: LIFETIME, dueAt };
      await using group = await (hubs === 0 ? startSingleHub(options) : startSite(database, hubs, options));
      await sleep(quick ? 1000 : SETTLE);
      const idle = memoryOf(group);
      const tokens = await requestTokens(group);
      if (bootTime() > begin - 1000) return false;
      setUps.set(turn, 1.3 * ((bootTime() - began) / 1000) + 2);
      add(START, 'ms', median(group.startUps));
      add(IDLE, 'MB', idle.all);
      add(IDLE_OWN, 'MB', idle.own);
      add(TOKENS, '1/s', tokens.rate, 'more');
      add(TOKENS_CPU, 'µs', tokens.cpu);
      await sleep(begin - 500 - bootTime());
      await refreshSingly(group);
      await refreshAll(group);
      const loaded = memoryOf(group);
      add(LOADED, 'MB', loaded.all);
      add(LOADED_OWN, 'MB', loaded.own);
      if (group.database !== null) add(SERVER_MEMORY, 'MB', serverMemory(server));
      return true;
    }

    /** Refreshes a few grants one after another, as often as all of them are due in an hour. */
    async function refreshSingly(group: HubGroup): Promise<void> {
      const { hubs, fleet, database } = group;
      const watch = new NewTokenWatch(hubs, fleet);
      const before = portal.refreshes;
      await database?.resetCounts();
      const began = performance.now();
      portal.onRefresh = (refresh) => watch.add(refresh);
      while (portal.refreshes < before + plan.single) await sleep(20);
      await watch.end();
      portal.onRefresh = () => undefined;
      const counts = await database?.readCounts();
      const seconds = (performance.now() - began) / 1000;
      // Another revision writes tokens that do not tell their connections.
      if (watch.first.length > 0) {
        add(FIRST_P50, 'ms', median(watch.first));
        add(FIRST_WORST, 'ms', Math.max(...watch.first));
      }
      if (watch.others.length > 0) {
        add(OTHERS_P50, 'ms', median(watch.others));
        add(OTHERS_P99, 'ms', quantile(watch.others, 0.99));
        add(OTHERS_WORST, 'ms', Math.max(...watch.others));
      }
      if (counts === undefined) return;
      add(STATEMENTS, '', counts.refreshStatements / plan.single);
      add(COMMITS, '', counts.commits / plan.single);
      add(CHANGES, '', counts.changes / plan.single);
      add(WAL, 'kB', counts.wal / 1000 / plan.single);
      if (hubs.length > 1) add(READS, '', counts.grantReads / plan.single / (hubs.length - 1));
      add(BACKGROUND, '1/s', counts.otherStatements / seconds / hubs.length);
    }

    /** Measures how fast all other grants are refreshed, which are due at once. */
    async function refreshAll(group: HubGroup): Promise<void> {
      const reach = (share: number) => before + share * (plan.grants - plan.single);
      const before = portal.refreshes;
      while (portal.refreshes < reach(COUNTED.from)) await sleep(5);
      const from = usage(group, server, portal);
      const until = from.at + 1000 * plan.counted;
      while (portal.refreshes < reach(COUNTED.to) && performance.now() < until) await sleep(5);
      const to = usage(group, server, portal);
      const count = to.refreshes - from.refreshes;
      add(REFRESHES, '1/s', (1000 * count) / (to.at - from.at), 'more');
      add(HUBS_CPU, 'ms', (to.hubs - from.hubs) / count);
      if (group.database !== null) add(SERVER_CPU, 'ms', (to.server - from.server) / count);
    }
  });
  return measured.all;

  /** Requests tokens from the hub that has started last, while the others have nothing to do. */
  async function requestTokens({ hubs, fleet }: HubGroup): Promise<{ readonly rate: number; readonly cpu: number }> {
    const hub = hubs.at(-1);
    if (hub === undefined) throw new Error('there is no hub');
    const chains = fleet.slice(-CHAINS).map((member) => {
      return { request: tokenRequest(hub.httpsPort, member), expected: '"access_token"' };
    });
    const before = cpuTime(hub.pid);
    const load = { port: hub.httpsPort, chains, warmUp: plan.warmUp, seconds: plan.seconds };
    const { rate, sent } = await runLoad('latchkey', load);
    return { rate, cpu: (1000 * (cpuTime(hub.pid) - before)) / sent };
  }
}

function bootTime(): number {
  return clock.now().uptime;
}

const clock = systemClock();

/** What has been used and done so far; times in ms. */
function usage(group: HubGroup, server: PostgresServer, { refreshes }: PermissivePortal) {
  return { at: performance.now(), hubs: hubsCpu(group), server: serverCpu(server), refreshes };
}

/** Memory of a hub, in MB; of several the median. */
function memoryOf({ hubs }: HubGroup): { readonly all: number; readonly own: number } {
  const each = hubs.map(({ pid }) => residentMemory(pid));
  return { all: median(each.map(({ all }) => all)), own: median(each.map(({ own }) => own)) };
}

function report(measured: readonly Measurement[]): Report {
  const of = (row: string, what: string) => findMeasurement(measured, `${row}: ${what}`, 'latchkey');
  const rows = ROWS.filter((row) => measured.some(({ what }) => what.startsWith(`${row}: `)));
  const sites = rows.filter((row) => row !== SQLITE);
  const three = siteOf(3);
  const compared = (what: string) => ratioOf(of(three, what), of(SQLITE, what));
  const worst = (what: string) =>
    Math.max(...measured.filter((one) => one.what.endsWith(`: ${what}`)).flatMap(({ values }) => values));
  return {
    targets: [
      absoluteTarget(
        'the other hubs issue the new token within a second, the worst case',
        worst(OTHERS_WORST),
        'ms',
        1000,
        0,
      ),
      ratioTarget(`${TOKENS} of three: at least 0.9 × ${SQLITE}`, compared(TOKENS), { atLeast: 0.9 }),
      ratioTarget(`${LOADED}, a hub of three: at most 1.25 × ${SQLITE}`, compared(LOADED), { atMost: 1.25 }),
      absoluteTarget('commits per refresh: at most 2', worst(COMMITS), '', 2),
      absoluteTarget('statements per refresh of the hub that refreshes: at most 8', worst(STATEMENTS), '', 8),
      absoluteTarget('reads per refresh by each other hub: at most 2', worst(READS), '', 2),
    ],
    tables: [
      rowTable(measured, rows, [REFRESHES, HUBS_CPU, SERVER_CPU, TOKENS, TOKENS_CPU]),
      rowTable(measured, rows, [START, IDLE, IDLE_OWN, LOADED, LOADED_OWN, SERVER_MEMORY]),
      rowTable(measured, sites, [STATEMENTS, COMMITS, CHANGES, WAL, READS, BACKGROUND]),
      rowTable(measured, rows, [FIRST_P50, FIRST_WORST, OTHERS_P50, OTHERS_P99, OTHERS_WORST]),
    ],
  };
}
