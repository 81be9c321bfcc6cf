import { readFile } from 'node:fs/promises';
import type { StatusReport } from '../core/administration.ts';
import type { ApplianceStatus } from '../core/appliances/appliance-status.ts';
import type { Instant } from '../core/clock.ts';
import { CONNECTION_STATES, type ConnectionStatus } from '../core/connections/connection-status.ts';
import type { Condition } from '../core/health/condition.ts';
import { HUB_PROBLEM_CODES } from '../core/reports/notice.ts';
import type { Counters, DurationHistogram } from './counters.ts';
import { createMetricFamilies, type MetricFamilies } from './metric-families.ts';
import { readiness } from './readiness.ts';

/** Where the metrics come from. */
export interface ExpositionContext {
  status(): Promise<StatusReport>;
  /** The ids of all connections, by their names. */
  connectionIds(): ReadonlyMap<string, string>;
  /** The ids of all appliances, by their names. */
  applianceIds(): ReadonlyMap<string, string>;
  /** When each portal last responded in normal service, by its name. */
  portalsReached(): ReadonlyMap<string, Instant>;
  /** How far the hub's clock is ahead of the confirmed clock, in ms; null while that is unknown. */
  clockOffset(): number | null;
  readonly counters: Counters;
}

type DurationReader = ReturnType<DurationHistogram['createReader']>;

/** How many connections and how many appliances have their own series at most. */
const MAX_LISTED = 10_000;

/** Renders all metrics in Prometheus' text format. The families are created at the first request. */
export class Exposition {
  readonly #context: ExpositionContext;
  readonly #readRefreshDurations: DurationReader;
  readonly #readCommitDurations: DurationReader;
  #families: Promise<MetricFamilies> | null = null;
  #rendering: Promise<string> | null = null;

  constructor(context: ExpositionContext) {
    this.#context = context;
    this.#readRefreshDurations = context.counters.refreshDurations.createReader();
    this.#readCommitDurations = context.counters.commitDurations.createReader();
  }

  /** Renders the current metrics. Concurrent calls get the same text. */
  render(): Promise<string> {
    this.#rendering ??= this.#render().finally(() => {
      this.#rendering = null;
    });
    return this.#rendering;
  }

  async #render(): Promise<string> {
    this.#families ??= createMetricFamilies();
    const families = await this.#families;
    const status = await this.#context.status();
    const connections = status.connections.slice(0, MAX_LISTED);
    const appliances = status.appliances.slice(0, MAX_LISTED);
    setHubMetrics(families, status, this.#context.clockOffset());
    setConnectionMetrics(families, connections);
    setPortalMetrics(families, this.#context.portalsReached());
    setApplianceMetrics(families, appliances);
    families.ready.set(readiness(status.appliances).ready ? 1 : 0);
    setCounters(families, connections, appliances, this.#context);
    this.#readRefreshDurations((seconds) => families.refreshDuration.observe(seconds));
    this.#readCommitDurations((seconds) => families.commitDuration.observe(seconds));
    await setProcessMetrics(families);
    return families.registry.metrics();
  }
}

function setHubMetrics(
  families: MetricFamilies,
  { hub, conditions, notices }: StatusReport,
  clockOffset: number | null,
): void {
  families.build.set({ version: hub.version }, 1);
  families.uptime.set(hub.uptime);
  const problems = new Set(hub.problems?.map(({ code }) => code));
  for (const code of HUB_PROBLEM_CODES) families.hubProblem.set({ code }, problems.has(code) ? 1 : 0);
  families.conditions.reset();
  for (const { code, severity, ...subject } of conditions) {
    families.conditions.inc({ code, severity, ...subjectLabels(subject) });
  }
  families.notices.reset();
  for (const { code, severity, ...subject } of notices) {
    families.notices.inc({ notice: code, severity, ...subjectLabels(subject) });
  }
  families.clockOffset.remove();
  if (clockOffset !== null) families.clockOffset.set(clockOffset / 1000);
}

/** The labels that say what a condition or a notice concerns. */
function subjectLabels({ connection, appliance }: Pick<Condition, 'connection' | 'appliance'>) {
  return { ...(connection === null ? {} : { connection }), ...(appliance === null ? {} : { appliance }) };
}

function setConnectionMetrics(
  { connections, connectionInfo, connectionState, expires, lastRefresh, loginEnds }: MetricFamilies,
  listed: readonly ConnectionStatus[],
): void {
  for (const family of [connections, connectionInfo, connectionState, expires, lastRefresh, loginEnds]) family.reset();
  for (const state of CONNECTION_STATES) connections.set({ state }, 0);
  for (const { name: connection, state: current, portal, ...status } of listed) {
    connections.inc({ state: current });
    connectionInfo.set({ connection, portal }, 1);
    for (const state of CONNECTION_STATES) connectionState.set({ connection, state }, state === current ? 1 : 0);
    if (status.expiresIn !== null) expires.set({ connection }, status.expiresIn);
    if (status.lastRefresh !== null) lastRefresh.set({ connection }, unixTime(status.lastRefresh));
    if (status.loginEnds !== null) loginEnds.set({ connection }, unixTime(status.loginEnds));
  }
}

function setPortalMetrics({ portalReached }: MetricFamilies, reached: ReadonlyMap<string, Instant>): void {
  portalReached.reset();
  for (const [portal, { wall }] of reached) portalReached.set({ portal }, wall / 1000);
}

function setApplianceMetrics(
  { appliances, applianceInfo, applianceState, lastToken, tokens: counts }: MetricFamilies,
  listed: readonly ApplianceStatus[],
): void {
  for (const family of [appliances, applianceInfo, applianceState, lastToken, counts]) family.reset();
  for (const state of CONNECTION_STATES) appliances.set({ state }, 0);
  for (const { name: appliance, connection, state: current, lastToken: last, tokens } of listed) {
    appliances.inc({ state: current });
    applianceInfo.set({ appliance, connection }, 1);
    for (const state of CONNECTION_STATES) applianceState.set({ appliance, state }, state === current ? 1 : 0);
    if (last !== null) lastToken.set({ appliance }, unixTime(last));
    counts.set({ appliance, period: 'today' }, tokens.today);
    counts.set({ appliance, period: 'last_14_days' }, tokens.last14Days);
  }
}

/** @param instant RFC 3339. @returns seconds since 1970 */
function unixTime(instant: string): number {
  return Date.parse(instant) / 1000;
}

/** Usual outcomes begin at 0, so that Prometheus sees the first one as a change. */
function setCounters(
  { refreshes, tokensIssued, failedTokenRequests, pairings, refusedTokens }: MetricFamilies,
  connections: readonly ConnectionStatus[],
  appliances: readonly ApplianceStatus[],
  { counters, connectionIds, applianceIds }: ExpositionContext,
): void {
  for (const family of [refreshes, tokensIssued, failedTokenRequests, pairings, refusedTokens]) family.reset();
  const ids = { connections: connectionIds(), appliances: applianceIds() };
  counters.retainOnly(new Set(ids.connections.values()), new Set(ids.appliances.values()));
  for (const { name: connection } of connections) {
    const id = ids.connections.get(connection);
    if (id === undefined) continue;
    const counts = counters.forConnection(id);
    refreshes.inc({ connection, outcome: 'refreshed' }, 0);
    for (const [outcome, count] of Object.entries(counts.refreshes)) refreshes.inc({ connection, outcome }, count);
    for (const [outcome, count] of Object.entries(counts.pairings)) pairings.inc({ connection, outcome }, count);
    refusedTokens.inc({ connection }, counts.rejectedTokens);
  }
  for (const { name: appliance } of appliances) {
    const id = ids.appliances.get(appliance);
    if (id === undefined) continue;
    const { token: issued = 0, ...failed } = counters.requestsOf(id);
    tokensIssued.inc({ appliance }, issued);
    for (const [reason, count] of Object.entries(failed)) failedTokenRequests.inc({ appliance, reason }, count);
  }
}

async function setProcessMetrics({ written, cpu, memory }: MetricFamilies): Promise<void> {
  const bytes = await writtenBytes();
  written.reset();
  if (bytes === null) written.remove();
  else written.inc(bytes);
  const { user, system } = process.cpuUsage();
  cpu.reset();
  cpu.inc((user + system) / 1e6);
  memory.set(process.memoryUsage.rss());
}

/** How many bytes this process has written to disks (proc(5), `/proc/self/io`); null if that is unknown. */
async function writtenBytes(): Promise<number | null> {
  const text = await readFile('/proc/self/io', 'ascii').catch(() => '');
  const [, bytes] = /^write_bytes: (\d+)$/m.exec(text) ?? [];
  return bytes === undefined ? null : Number(bytes);
}
