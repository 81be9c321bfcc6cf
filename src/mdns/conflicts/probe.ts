import type { Timers } from '../../core/clock.ts';
import type { Random } from '../../core/random.ts';
import type { ReceivedRecord, RecordSource } from '../records/record-data.ts';
import type { ResourceRecord } from '../records/records.ts';
import type { MdnsLink } from '../sockets/mdns-link.ts';
import { detectConflict, type NameClaim } from './conflict-detection.ts';

/** RFC 6762 section 8.1: three probes, 250 ms apart, after a random delay of up to 250 ms. */
const PROBE_COUNT = 3;
const PROBE_INTERVAL = 250;

/**
 * In ms. RFC 6762 section 8.2: after losing to another host's probe, probe again after a second: that host may have
 * gone.
 */
const LOST_PROBE_DELAY = 1000;
const MAX_ROUNDS = 3;

/** Options of {@link probe}. */
export interface ProbeOptions {
  readonly timers: Timers;
  readonly random: Random;
  /** Aborts the probing. */
  readonly signal: AbortSignal;
  /** Whether the hub itself has sent this record: see {@link detectConflict}. */
  isOwnRecord(record: ReceivedRecord): boolean;
}

/**
 * Probes the link for other hosts that hold one of these records' names (RFC 6762 section 8.1). It takes 0.75 to 1 s.
 * If two hubs probe at the same time, the one with the greater data wins the name (section 8.2): two hubs with the same
 * name start together whenever the power returns.
 * @returns the claim to the name that is taken; null if all are free or `signal` was aborted
 * @throws Error of the socket
 */
export async function probe(
  link: MdnsLink,
  own: readonly ResourceRecord[],
  options: ProbeOptions,
): Promise<NameClaim | null> {
  for (let round = 1; ; round++) {
    const heard = await probeOnce(link, own, options);
    if (heard === null || options.signal.aborted) return null;
    if (heard.how === 'response' || round === MAX_ROUNDS) return heard.claim;
    await options.timers.sleep(LOST_PROBE_DELAY, options.signal);
  }
}

/** @returns the first claim that beats the hub's own; null if there is none */
async function probeOnce(
  link: MdnsLink,
  own: readonly ResourceRecord[],
  { timers, random, signal: outerSignal, isOwnRecord }: ProbeOptions,
): Promise<{ readonly claim: NameClaim; readonly how: RecordSource } | null> {
  let heard: { readonly claim: NameClaim; readonly how: RecordSource } | null = null;
  const claimed = new AbortController();
  const signal = AbortSignal.any([outerSignal, claimed.signal]);
  const unlisten = link.onRecords((records, how) => {
    const conflict = detectConflict(own, records, how, isOwnRecord);
    if (heard !== null || conflict === null || (how === 'probe' && !conflict.lost)) return;
    heard = { claim: conflict, how };
    claimed.abort();
  });
  try {
    await timers.sleep(random.fraction() * PROBE_INTERVAL, signal);
    for (let sent = 0; sent < PROBE_COUNT && !signal.aborted; sent++) {
      await link.probe(own);
      await timers.sleep(PROBE_INTERVAL, signal);
    }
    return heard;
  } finally {
    unlisten();
  }
}
