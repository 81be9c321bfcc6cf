import type { Registry } from 'prom-client';
import { BUCKETS } from './counters.ts';

/**
 * Makes all metrics, in a registry of their own; docs/metrics.md explains them to people. The library is loaded here, and so not
 * before the first scrape: it takes memory that few hubs need to spend.
 */
export async function openFamilies() {
  const { Counter, Gauge, Histogram, Registry } = await import('prom-client').then((module) => module.default);
  const registry: Registry = new Registry();
  const registers = [registry];

  function gauge<Label extends string = never>(name: string, help: string, ...labelNames: Label[]) {
    return new Gauge<Label>({ name, help, labelNames, registers });
  }

  function counter<Label extends string = never>(name: string, help: string, ...labelNames: Label[]) {
    return new Counter<Label>({ name, help, labelNames, registers });
  }

  return {
    registry,
    build: gauge('latchkey_build_info', 'Always 1; the label says which version runs.', 'version'),
    uptime: gauge('latchkey_hub_uptime_seconds', 'Seconds since the daemon was started.'),
    ready: gauge('latchkey_ready', '1 while every grant can be served, as /readyz tells; else 0.'),
    hubProblem: gauge('latchkey_hub_problem', '1 while this is wrong with the hub as a whole; else 0.', 'code'),
    conditions: gauge(
      'latchkey_condition',
      '1 while this is not as it should be; without an appliance it is of the hub as a whole.',
      'code',
      'severity',
      'appliance',
    ),
    notices: gauge(
      'latchkey_notices',
      'Notices that stand; without an appliance those of the hub as a whole.',
      'notice',
      'severity',
      'appliance',
    ),
    clockOffset: gauge(
      'latchkey_clock_offset_seconds',
      "How far the hub's clock is ahead of the true time that a portal or NTP has told; absent while nothing has.",
    ),
    appliances: gauge('latchkey_appliances', 'Appliances in this state.', 'state'),
    state: gauge(
      'latchkey_appliance_state',
      '1 for the state that the appliance is in, 0 for all others.',
      'appliance',
      'state',
    ),
    expires: gauge(
      'latchkey_token_expires_seconds',
      'Seconds that the token at hand has left; absent where there is none, or nobody can know.',
      'appliance',
    ),
    lastRefresh: gauge(
      'latchkey_last_refresh_timestamp_seconds',
      "When the token at hand was given, in seconds since 1970 by the hub's clock; absent where nobody knows.",
      'appliance',
    ),
    refreshes: counter(
      'latchkey_refreshes_total',
      'Refreshes that have ended: refreshed, or the code of the problem.',
      'appliance',
      'outcome',
    ),
    duration: new Histogram({
      name: 'latchkey_refresh_duration_seconds',
      help: 'How long refreshes took from sending, whatever came of them; most of it is the portal.',
      buckets: BUCKETS,
      registers,
    }),
    handOuts: counter(
      'latchkey_hand_outs_total',
      'Answers to appliances that asked for their token.',
      'appliance',
      'outcome',
    ),
    pairings: counter(
      'latchkey_pairings_total',
      'Pairings that have ended: paired, or the reason of the failure.',
      'appliance',
      'outcome',
    ),
    refusedTokens: counter(
      'latchkey_tokens_refused_total',
      'Access tokens that the cloud refused, as the appliance says.',
      'appliance',
    ),
    written: counter(
      'latchkey_store_written_bytes_total',
      'Bytes that the daemon has had written to disks: the store, and little else.',
    ),
    cpu: counter('process_cpu_seconds_total', 'Processor time that the daemon has used, in seconds.'),
    memory: gauge('process_resident_memory_bytes', 'Memory that the daemon has now, in bytes.'),
  };
}

/** All metrics. */
export type Families = Awaited<ReturnType<typeof openFamilies>>;
