import { readFile } from 'node:fs/promises';
import { APPLIANCE_STATES, type ApplianceStatus, type HouseStatus } from '../core/administration.ts';
import { HUB_PROBLEM_CODES } from '../core/reports/notice.ts';
import type { ApplianceCounters, Counters, Histogram } from './counters.ts';
import { readiness } from './readiness.ts';

/** What the metrics are made from. */
export interface ExpositionContext {
  status(): Promise<HouseStatus>;
  /** The ids of all appliances, by their names. */
  ids(): ReadonlyMap<string, string>;
  /** How far the hub's clock is ahead of the true time, in ms; null while that is not known. */
  clockOffset(): number | null;
  readonly counters: Counters;
}

type Labels = Readonly<Record<string, string>>;

/** One line of a metric, whose name may have a suffix; without a value there is no line. */
type Series = readonly [labels: Labels, value: number | null, suffix?: string];

/** Gives all metrics as they are now, in Prometheus' text format, version 0.0.4; docs/metrics.md explains them to people. */
export async function exposition(context: ExpositionContext): Promise<string> {
  const status = await context.status();
  return [
    ...hubFamilies(status, context.clockOffset()),
    ...stateFamilies(status.appliances),
    ...countFamilies(status.appliances, context),
    ...(await processFamilies()),
  ].join('');
}

function hubFamilies({ hub, appliances, conditions, notices }: HouseStatus, clockOffset: number | null): string[] {
  const { ready } = readiness(appliances);
  const problems = new Set(hub.problems?.map(({ code }) => code));
  return [
    gauge('latchkey_build_info', 'Always 1; the label says which version runs.', [[{ version: hub.version }, 1]]),
    gauge('latchkey_hub_uptime_seconds', 'Seconds since the daemon was started.', [[{}, hub.uptime]]),
    gauge('latchkey_ready', '1 while every grant can be served, as /readyz tells; else 0.', [[{}, ready ? 1 : 0]]),
    gauge(
      'latchkey_hub_problem',
      '1 while this is wrong with the hub as a whole; else 0.',
      HUB_PROBLEM_CODES.map((code) => [{ code }, problems.has(code) ? 1 : 0]),
    ),
    gauge(
      'latchkey_condition',
      '1 while this is not as it should be; without an appliance it is of the hub as a whole.',
      counted(conditions.map(({ code, severity, appliance }) => ({ code, severity, ...named(appliance) }))),
    ),
    gauge(
      'latchkey_notices',
      'Notices that stand; without an appliance those of the hub as a whole.',
      counted(notices.map(({ code, severity, appliance }) => ({ notice: code, severity, ...named(appliance) }))),
    ),
    gauge(
      'latchkey_clock_offset_seconds',
      "How far the hub's clock is ahead of the true time that a portal or NTP has told; absent while nothing has.",
      [[{}, clockOffset === null ? null : clockOffset / 1000]],
    ),
  ];
}

function stateFamilies(all: readonly ApplianceStatus[]): string[] {
  return [
    gauge(
      'latchkey_appliances',
      'Appliances in this state.',
      APPLIANCE_STATES.map((state) => [{ state }, all.filter((one) => one.state === state).length]),
    ),
    gauge(
      'latchkey_appliance_state',
      '1 for the state that the appliance is in, 0 for all others.',
      all.flatMap(({ name: appliance, state: current }) =>
        APPLIANCE_STATES.map((state): Series => [{ appliance, state }, state === current ? 1 : 0]),
      ),
    ),
    gauge(
      'latchkey_token_expires_seconds',
      'Seconds that the token at hand has left; absent where there is none, or nobody can know.',
      all.map(({ name: appliance, expiresIn }) => [{ appliance }, expiresIn]),
    ),
    gauge(
      'latchkey_last_refresh_timestamp_seconds',
      "When the token at hand was given, in seconds since 1970 by the hub's clock; absent where nobody knows.",
      all.map(({ name: appliance, lastRefresh: at }) => [{ appliance }, at === null ? null : Date.parse(at) / 1000]),
    ),
  ];
}

/** Outcomes that are usual begin at 0, so that the first one is seen as a change. */
function countFamilies(all: readonly ApplianceStatus[], { counters, ids }: ExpositionContext): string[] {
  const known = ids();
  counters.keep(new Set(known.values()));
  const own = all.flatMap(({ name: appliance }) => {
    const id = known.get(appliance);
    return id === undefined ? [] : [{ appliance, counts: counters.of(id) }];
  });
  const byOutcome = (countsOf: (counts: ApplianceCounters) => Readonly<Record<string, number>>) =>
    own.flatMap(({ appliance, counts }) =>
      Object.entries(countsOf(counts)).map(([outcome, count]): Series => [{ appliance, outcome }, count]),
    );
  return [
    counter(
      'latchkey_refreshes_total',
      'Refreshes that have ended: refreshed, or the code of the problem.',
      byOutcome(({ refreshes }) => ({ refreshed: 0, ...refreshes })),
    ),
    family(
      'histogram',
      'latchkey_refresh_duration_seconds',
      'How long refreshes took from sending, whatever came of them; most of it is the portal.',
      seriesOf(counters.refreshDurations),
    ),
    counter(
      'latchkey_hand_outs_total',
      'Answers to appliances that asked for their token.',
      byOutcome(({ handOuts }) => ({ token: 0, ...handOuts })),
    ),
    counter(
      'latchkey_pairings_total',
      'Pairings that have ended: paired, or the reason of the failure.',
      byOutcome(({ pairings }) => ({ ...pairings })),
    ),
    counter(
      'latchkey_tokens_refused_total',
      'Access tokens that the cloud refused, as the appliance says.',
      own.map(({ appliance, counts }) => [{ appliance }, counts.refusedTokens]),
    ),
  ];
}

async function processFamilies(): Promise<string[]> {
  const { user, system } = process.cpuUsage();
  return [
    counter(
      'latchkey_store_written_bytes_total',
      'Bytes that the daemon has had written to disks: the store, and little else.',
      [[{}, await writtenBytes()]],
    ),
    counter('process_cpu_seconds_total', 'Processor time that the daemon has used, in seconds.', [
      [{}, (user + system) / 1e6],
    ]),
    gauge('process_resident_memory_bytes', 'Memory that the daemon has now, in bytes.', [
      [{}, process.memoryUsage.rss()],
    ]),
  ];
}

/** How many bytes this process has had written to disks (proc(5), `/proc/self/io`); null where that can't be known. */
async function writtenBytes(): Promise<number | null> {
  const text = await readFile('/proc/self/io', 'ascii').catch(() => '');
  const [, bytes] = /^write_bytes: (\d+)$/m.exec(text) ?? [];
  return bytes === undefined ? null : Number(bytes);
}

function named(appliance: string | null): Labels {
  return appliance === null ? {} : { appliance };
}

/** How many there are of each. */
function counted(all: readonly Labels[]): readonly Series[] {
  return [...Map.groupBy(all, labelled).values()].map((alike) => [alike[0] ?? {}, alike.length]);
}

function seriesOf({ buckets, sum }: Histogram): readonly Series[] {
  return [
    ...buckets.map(({ bound, count }): Series => [{ le: String(bound).replace('Infinity', '+Inf') }, count, '_bucket']),
    [{}, sum, '_sum'],
    [{}, buckets.at(-1)?.count ?? 0, '_count'],
  ];
}

function gauge(name: string, help: string, series: readonly Series[]): string {
  return family('gauge', name, help, series);
}

function counter(name: string, help: string, series: readonly Series[]): string {
  return family('counter', name, help, series);
}

function family(type: string, name: string, help: string, series: readonly Series[]): string {
  const lines = series.map(([labels, value, suffix = '']) =>
    value === null ? '' : `${name}${suffix}${labelled(labels)} ${value}\n`,
  );
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`;
}

/** No value is escaped: appliances' names, codes and versions have nothing that would have to be. */
function labelled(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${value}"`);
  return pairs.length === 0 ? '' : `{${pairs.join()}}`;
}
