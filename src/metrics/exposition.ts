import { readFile } from 'node:fs/promises';
import { APPLIANCE_STATES, type ApplianceStatus, type StatusReport } from '../core/administration.ts';
import { HUB_PROBLEM_CODES } from '../core/reports/notice.ts';
import type { Counters } from './counters.ts';
import { createMetricFamilies, type MetricFamilies } from './metric-families.ts';
import { readiness } from './readiness.ts';

/** Where the metrics come from. */
export interface ExpositionContext {
  status(): Promise<StatusReport>;
  /** The ids of all appliances, by their names. */
  applianceIds(): ReadonlyMap<string, string>;
  /** How far the hub's clock is ahead of the confirmed clock, in ms; null while that is unknown. */
  clockOffset(): number | null;
  readonly counters: Counters;
}

/** How many appliances have their own series at most. */
const MAX_APPLIANCES = 10_000;

/** Renders all metrics in Prometheus' text format. The families are created at the first request. */
export class Exposition {
  readonly #context: ExpositionContext;
  readonly #readRefreshDurations: ReturnType<Counters['refreshDurations']['createReader']>;
  #families: Promise<MetricFamilies> | null = null;
  #rendering: Promise<string> | null = null;

  constructor(context: ExpositionContext) {
    this.#context = context;
    this.#readRefreshDurations = context.counters.refreshDurations.createReader();
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
    const listed = status.appliances.slice(0, MAX_APPLIANCES);
    setHubMetrics(families, status, this.#context.clockOffset());
    setStateMetrics(families, listed);
    families.ready.set(readiness(status.appliances).ready ? 1 : 0);
    setApplianceCounters(families, listed, this.#context);
    this.#readRefreshDurations((seconds) => families.duration.observe(seconds));
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
  for (const { code, severity, appliance } of conditions) {
    families.conditions.inc({ code, severity, ...(appliance === null ? {} : { appliance }) });
  }
  families.notices.reset();
  for (const { code, severity, appliance } of notices) {
    families.notices.inc({ notice: code, severity, ...(appliance === null ? {} : { appliance }) });
  }
  families.clockOffset.remove();
  if (clockOffset !== null) families.clockOffset.set(clockOffset / 1000);
}

function setStateMetrics(families: MetricFamilies, listed: readonly ApplianceStatus[]): void {
  const { appliances, state: states, expires, lastRefresh } = families;
  for (const family of [appliances, states, expires, lastRefresh]) family.reset();
  for (const state of APPLIANCE_STATES) appliances.set({ state }, 0);
  for (const { name: appliance, state: current, expiresIn, lastRefresh: refreshed } of listed) {
    appliances.inc({ state: current });
    for (const state of APPLIANCE_STATES) states.set({ appliance, state }, state === current ? 1 : 0);
    if (expiresIn !== null) expires.set({ appliance }, expiresIn);
    if (refreshed !== null) lastRefresh.set({ appliance }, Date.parse(refreshed) / 1000);
  }
}

/** Usual outcomes begin at 0, so that Prometheus sees the first one as a change. */
function setApplianceCounters(
  { refreshes, tokensIssued, failedTokenRequests, pairings, refusedTokens }: MetricFamilies,
  listed: readonly ApplianceStatus[],
  { counters, applianceIds: ids }: ExpositionContext,
): void {
  for (const family of [refreshes, tokensIssued, failedTokenRequests, pairings, refusedTokens]) family.reset();
  const known = ids();
  counters.retainOnly(new Set(known.values()));
  for (const { name: appliance } of listed) {
    const id = known.get(appliance);
    if (id === undefined) continue;
    const counts = counters.forAppliance(id);
    refreshes.inc({ appliance, outcome: 'refreshed' }, 0);
    for (const [outcome, count] of Object.entries(counts.refreshes)) refreshes.inc({ appliance, outcome }, count);
    const { token: issued = 0, ...failed } = counts.tokenRequests;
    tokensIssued.inc({ appliance }, issued);
    for (const [reason, count] of Object.entries(failed)) failedTokenRequests.inc({ appliance, reason }, count);
    for (const [outcome, count] of Object.entries(counts.pairings)) pairings.inc({ appliance, outcome }, count);
    refusedTokens.inc({ appliance }, counts.rejectedTokens);
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
