import { readdir, readFile } from 'node:fs/promises';
import { HUB_FIELDS, type StatusReport } from '../core/administration.ts';
import { APPLIANCE_FIELDS } from '../core/appliances/appliance-status.ts';
import type { Instant } from '../core/clock.ts';
import { CONNECTION_FIELDS, CONNECTION_STATES, type ConnectionState } from '../core/connections/connection-status.ts';
import { HUB_PROBLEM_CODES } from '../core/health/hub-conditions.ts';
import type { FieldValue, StatusField } from '../core/status-field.ts';
import { wallClock } from '../system/clock.ts';
import { forEachInSlices } from '../system/slices.ts';
import type { Counters, DurationHistogram } from './counters.ts';
import { FAMILIES, fieldFamilies, type MetricFamily } from './metric-families.ts';
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

/** Labels of a series. A label whose value is null is left out. */
type Labels = Readonly<Record<string, string | null>>;
type Series = Iterable<readonly [labels: Labels, value: number | null]>;

/** Renders the current metrics in Prometheus' text format. In slices: a thousand connections take 50 ms. */
export async function renderMetrics(context: ExpositionContext): Promise<string> {
  const status = await context.status();
  let text = '';
  await forEachInSlices(lines(status, await countsOfSystem(), context), (line) => {
    text += line;
  });
  return text;
}

function* lines(status: StatusReport, counts: SystemCounts, context: ExpositionContext): Generator<string> {
  const { hub, connections, appliances, conditions, notices } = status;
  const problems = new Set(hub.problems?.map(({ code }) => code));
  const clockOffset = context.clockOffset();
  yield* family(FAMILIES.build, [[{ version: hub.version }, 1]]);
  yield* fieldLines(HUB_FIELDS, [hub]);
  yield* family(FAMILIES.ready, [[{}, readiness(status.appliances).ready ? 1 : 0]]);
  yield* family(
    FAMILIES.hubProblem,
    HUB_PROBLEM_CODES.map((code) => [{ code }, problems.has(code) ? 1 : 0]),
  );
  yield* counted(
    FAMILIES.conditions,
    conditions.map(({ code, severity, connection, appliance }) => ({ code, severity, connection, appliance })),
  );
  yield* counted(
    FAMILIES.notices,
    notices.map(({ code, severity, connection, appliance }) => ({ notice: code, severity, connection, appliance })),
  );
  yield* family(FAMILIES.clockOffset, [[{}, clockOffset === null ? null : clockOffset / 1000]]);

  yield* family(FAMILIES.appliances, countStates(appliances));
  yield* each(FAMILIES.applianceInfo, appliances, ({ name, connection }) => [[{ appliance: name, connection }, 1]]);
  yield* each(FAMILIES.applianceState, appliances, ({ name, state }) => states({ appliance: name }, state));
  yield* fieldLines(APPLIANCE_FIELDS, appliances, 'appliance');
  yield* each(FAMILIES.tokens, appliances, ({ name, tokens }) => [
    [{ appliance: name, period: 'today' }, tokens.today],
    [{ appliance: name, period: 'last_14_days' }, tokens.last14Days],
  ]);

  yield* family(FAMILIES.connections, countStates(connections));
  yield* each(FAMILIES.connectionInfo, connections, ({ name, portal }) => [[{ connection: name, portal }, 1]]);
  yield* each(FAMILIES.connectionState, connections, ({ name, state }) => states({ connection: name }, state));
  yield* fieldLines(CONNECTION_FIELDS, connections, 'connection');
  yield* family(
    FAMILIES.portalReached,
    [...context.portalsReached()].map(([portal, { wall }]) => [{ portal }, wall / 1000]),
  );
  yield* counterLines(connections, appliances, context);

  yield* family(FAMILIES.written, [[{}, counts.written]]);
  const { user, system } = process.cpuUsage();
  yield* family(FAMILIES.cpu, [[{}, (user + system) / 1e6]]);
  yield* family(FAMILIES.memory, [[{}, process.memoryUsage.rss()]]);
  yield* family(FAMILIES.started, [[{}, STARTED_AT]]);
  yield* family(FAMILIES.openFiles, [[{}, counts.openFiles]]);
  yield* family(FAMILIES.maxFiles, [[{}, counts.maxFiles]]);
}

/** When the process started, in s since 1970. Not computed anew: a clock that is set must not look like a restart. */
const STARTED_AT = Math.round(wallClock.now().wall / 1000 - process.uptime());

/** Usual outcomes begin at 0, so that Prometheus sees the first one as a change. */
function* counterLines(
  connections: StatusReport['connections'],
  appliances: StatusReport['appliances'],
  { counters, connectionIds, applianceIds }: ExpositionContext,
): Generator<string> {
  const ids = { connections: connectionIds(), appliances: applianceIds() };
  counters.retainOnly(new Set(ids.connections.values()), new Set(ids.appliances.values()));
  const existing = connections.filter(({ name }) => ids.connections.has(name));
  const countsOf = ({ name }: { readonly name: string }) => counters.forConnection(ids.connections.get(name) ?? '');
  yield* each(FAMILIES.refreshes, existing, (connection) =>
    outcomes({ connection: connection.name }, { refreshed: 0, ...countsOf(connection).refreshes }),
  );
  yield* histogram(FAMILIES.refreshDuration, counters.refreshDurations);
  const known = appliances.filter(({ name }) => ids.appliances.has(name));
  const requestsOf = ({ name }: { readonly name: string }) => counters.requestsOf(ids.appliances.get(name) ?? '');
  yield* each(FAMILIES.tokensIssued, known, (appliance) => [
    [{ appliance: appliance.name }, requestsOf(appliance).token ?? 0],
  ]);
  yield* each(FAMILIES.failedTokenRequests, known, (appliance) => {
    const { token: _, ...failed } = requestsOf(appliance);
    return Object.entries(failed).map(([reason, count]) => [{ appliance: appliance.name, reason }, count]);
  });
  yield* each(FAMILIES.pairings, existing, (connection) =>
    outcomes({ connection: connection.name }, countsOf(connection).pairings),
  );
  yield* each(FAMILIES.refusedTokens, existing, (connection) => [
    [{ connection: connection.name }, countsOf(connection).rejectedTokens],
  ]);
  yield* histogram(FAMILIES.commitDuration, counters.commitDurations);
}

function* header({ name, help, type }: MetricFamily): Generator<string> {
  yield `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
}

/** The lines of a family. A series without a value is left out. */
function* family(described: MetricFamily, series: Series): Generator<string> {
  yield* header(described);
  yield* seriesLines(described, series);
  yield '\n';
}

function* histogram(described: MetricFamily, durations: DurationHistogram): Generator<string> {
  const { name } = described;
  const { bounds, counts, sum } = durations.read();
  yield* header(described);
  let total = 0;
  for (const [index, count] of counts.entries()) {
    total += count;
    yield `${name}_bucket{le="${bounds[index] ?? '+Inf'}"} ${total}\n`;
  }
  yield `${name}_sum ${sum}\n${name}_count ${total}\n\n`;
}

/** The lines of a family with series for each connection or appliance. */
function* each<Item>(described: MetricFamily, items: Iterable<Item>, seriesOf: (item: Item) => Series) {
  yield* header(described);
  for (const item of items) yield* seriesLines(described, seriesOf(item));
  yield '\n';
}

/** The lines of the families of fields. @param label as of {@link fieldFamilies} */
function* fieldLines<Name extends string>(
  fields: Readonly<Record<Name, StatusField>>,
  items: readonly (Readonly<Partial<Record<NoInfer<Name>, FieldValue>>> & { readonly name: string })[],
  ...label: string[]
): Generator<string> {
  for (const [field, described] of fieldFamilies(fields, ...label))
    yield* each(described, items, (item) => [
      [Object.fromEntries(label.map((one) => [one, item.name])), fieldNumber(item[field])],
    ]);
}

/** @param value an instant becomes seconds since 1970 */
function fieldNumber(value: FieldValue): number | null {
  return typeof value === 'string' ? Date.parse(value) / 1000 : (value ?? null);
}

function* seriesLines({ name, labelNames }: MetricFamily, series: Series): Generator<string> {
  for (const [labels, value] of series) if (value !== null) yield `${name}${labelText(labelNames, labels)} ${value}\n`;
}

/** The lines of a family that counts conditions or notices by their labels. */
function* counted(described: MetricFamily, items: readonly Labels[]): Generator<string> {
  const counts = new Map<string, number>();
  for (const labels of items) {
    const text = labelText(described.labelNames, labels);
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  yield* header(described);
  for (const [text, count] of counts) yield `${described.name}${text} ${count}\n`;
  yield '\n';
}

function labelText(names: readonly string[], values: Labels): string {
  const labels = names.flatMap((name) => {
    const value = values[name] ?? null;
    return value === null ? [] : [`${name}="${escapeLabel(value)}"`];
  });
  return labels.length === 0 ? '' : `{${labels.join(',')}}`;
}

function escapeLabel(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"');
}

/** 1 for the current state and 0 for all others. */
function states(labels: Labels, current: ConnectionState): Series {
  return CONNECTION_STATES.map((state) => [{ ...labels, state }, state === current ? 1 : 0]);
}

function countStates(items: readonly { readonly state: ConnectionState }[]): Series {
  return CONNECTION_STATES.map((state) => [{ state }, items.filter((item) => item.state === state).length]);
}

function outcomes(labels: Labels, counts: Readonly<Record<string, number>>): Series {
  return Object.entries(counts).map(([outcome, count]) => [{ ...labels, outcome }, count]);
}

/** What the system counts of this process (proc(5)); null if it does not. */
async function countsOfSystem() {
  const [io, limits, files] = await Promise.all([
    readFile('/proc/self/io', 'ascii').catch(() => ''),
    readFile('/proc/self/limits', 'ascii').catch(() => ''),
    readdir('/proc/self/fd').catch(() => null),
  ]);
  return {
    written: numberIn(io, /^write_bytes: (\d+)$/m),
    openFiles: files?.length ?? null,
    maxFiles: numberIn(limits, /^Max open files +(\d+)/m),
  };
}

type SystemCounts = Awaited<ReturnType<typeof countsOfSystem>>;

function numberIn(text: string, pattern: RegExp): number | null {
  const [, digits] = pattern.exec(text) ?? [];
  return digits === undefined ? null : Number(digits);
}
