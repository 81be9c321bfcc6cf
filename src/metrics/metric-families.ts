import { keysOf } from '../core/keys.ts';
import type { StatusField } from '../core/status-field.ts';

/** Metrics of one name, in the terms of Prometheus' text format. */
export interface MetricFamily {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  /** The labels that its series may have, in the order in which they are written. */
  readonly labelNames: readonly string[];
}

function gauge(name: string, help: string, ...labelNames: string[]): MetricFamily {
  return { name, type: 'gauge', help, labelNames };
}

function counter(name: string, help: string, ...labelNames: string[]): MetricFamily {
  return { name, type: 'counter', help, labelNames };
}

/** The metrics besides those of the fields of `status`. */
export const FAMILIES = {
  build: gauge('latchkey_build_info', 'Always 1; the label is the version of the daemon.', 'version'),
  ready: gauge(
    'latchkey_ready',
    '1 if every appliance of a paired connection can get a token now (as /readyz), else 0.',
  ),
  hubProblem: gauge(
    'latchkey_hub_problem',
    '1 while the hub as a whole has this problem, else 0; wrong_setup_codes is only in latchkey_condition and latchkey_notices.',
    'code',
  ),
  conditions: gauge(
    'latchkey_condition',
    '1 while this health condition is present. Without the label connection it concerns the hub as a whole, without appliance all appliances of the connection.',
    'code',
    'severity',
    'connection',
    'appliance',
  ),
  notices: gauge(
    'latchkey_notices',
    'Open notices. Without the label connection they concern the hub as a whole, without appliance all appliances of the connection.',
    'notice',
    'severity',
    'connection',
    'appliance',
  ),
  clockOffset: gauge(
    'latchkey_clock_offset_seconds',
    "Seconds by which the hub's clock is ahead of the time of NTP or a portal; absent while neither is known.",
  ),
  appliances: gauge('latchkey_appliances', 'Number of appliances whose connection is in this state.', 'state'),
  applianceInfo: gauge(
    'latchkey_appliance_info',
    'Always 1; the label connection is the connection that the appliance uses.',
    'appliance',
    'connection',
  ),
  applianceState: gauge(
    'latchkey_appliance_state',
    "1 for the current state of the appliance's connection, 0 for all other states.",
    'appliance',
    'state',
  ),
  tokens: gauge(
    'latchkey_appliance_tokens',
    'Access tokens that the appliance got in this period, also before a restart: today (UTC), or last_14_days, with today.',
    'appliance',
    'period',
  ),
  connections: gauge(
    'latchkey_connections',
    'Number of connections in this state: unpaired, pairing, active, retrying or needs_pairing.',
    'state',
  ),
  connectionInfo: gauge(
    'latchkey_connection_info',
    'Always 1; the label portal is the portal that the connection is at.',
    'connection',
    'portal',
  ),
  connectionState: gauge(
    'latchkey_connection_state',
    '1 for the current state of the connection, 0 for all other states.',
    'connection',
    'state',
  ),
  portalReached: gauge(
    'latchkey_portal_reached_timestamp_seconds',
    'Unix time at which the portal last responded in normal service; absent if it has not since the start.',
    'portal',
  ),
  refreshes: counter(
    'latchkey_refreshes_total',
    'Finished refreshes, by outcome: refreshed, or the code of the problem.',
    'connection',
    'outcome',
  ),
  refreshDuration: {
    name: 'latchkey_refresh_duration_seconds',
    type: 'histogram',
    help: 'Duration of refreshes, successful or not, from sending the request to the portal.',
    labelNames: [],
  },
  tokensIssued: counter('latchkey_tokens_issued_total', 'Access tokens issued to the appliance.', 'appliance'),
  failedTokenRequests: counter(
    'latchkey_token_requests_failed_total',
    'Token requests of the appliance that got an error response: not_paired, needs_pairing, unavailable (no usable token at the moment), other_scope (the request asked for another scope than the grant has), or other_connection (it named none of the connections that the appliance uses).',
    'appliance',
    'reason',
  ),
  pairings: counter(
    'latchkey_pairings_total',
    'Finished pairings, by outcome: paired, or the reason of the failure.',
    'connection',
    'outcome',
  ),
  refusedTokens: counter(
    'latchkey_tokens_refused_total',
    'Access tokens that the cloud refused, as reported by the appliances.',
    'connection',
  ),
  commitDuration: {
    name: 'latchkey_store_commit_duration_seconds',
    type: 'histogram',
    help: 'Duration of commits of the store, until they are on disk; a commit that fails counts too.',
    labelNames: [],
  },
  written: counter(
    'latchkey_store_written_bytes_total',
    'Bytes that the daemon has written to disk, nearly all of them the store; absent if the system does not count them.',
  ),
  cpu: counter('process_cpu_seconds_total', 'Total user and system CPU time of the daemon in seconds.'),
  memory: gauge('process_resident_memory_bytes', 'Resident memory of the daemon in bytes.'),
  started: gauge('process_start_time_seconds', "Unix time at which the daemon started, by the machine's clock."),
  openFiles: gauge('process_open_fds', 'Open files and connections of the daemon; absent if it can open no more.'),
  maxFiles: gauge('process_max_fds', 'The largest number of open files and connections that the daemon may have.'),
} as const satisfies Record<string, MetricFamily>;

/** The metrics of fields of `status`. @param label the label with the name of what has these fields; none for the hub */
export function fieldFamilies<Name extends string>(
  fields: Readonly<Record<Name, StatusField>>,
  ...label: string[]
): readonly (readonly [field: Name, family: MetricFamily])[] {
  return keysOf(fields).flatMap((name) => {
    const { metric } = fields[name];
    return metric === undefined ? [] : [[name, gauge(metric.name, metric.help, ...label)] as const];
  });
}
