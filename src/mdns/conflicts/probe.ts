import type { Timers } from '../../core/clock.ts';
import type { Random } from '../../core/random.ts';
import type { ReceivedRecord, RecordSource } from '../records/record-data.ts';
import type { ResourceRecord } from '../records/records.ts';
import type { MdnsLink } from '../sockets/mdns-link.ts';
import { detectConflict, type NameClaim } from './conflict-detection.ts';

/** RFC 6762 section 8.1: three probes, 250 ms apart, after a random wait of up to as much. */
const PROBE_COUNT = 3;
const PROBE_INTERVAL = 250;

/** RFC 6762 section 8.2: who loses to another one's probe tries again after a second: that one may have gone. */
const LOST_PROBE_DELAY = 1000;
const MAX_ROUNDS = 3;

export interface ProbeOptions {
  readonly timers: Timers;
  readonly random: Random;
  /** Ends the probing early. */
  readonly signal: AbortSignal;
  /** Whether the hub itself has said this: see {@link detectConflict}. */
  isOwnRecord(record: ReceivedRecord): boolean;
}

/**
 * Asks the link whether another host holds one of these records' names (RFC 6762 section 8.1), which takes 0.75 to
 * 1 s. Of two hubs that probe at once, the one with the greater data gets the name, as in section 8.2: two of one name
 * start together whenever the power comes back.
 * @returns the claim on the name that is taken, or null where all are free (or `signal` was aborted)
 * @throws Error as the socket gives it
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

/** @returns the first better claim that was heard */
async function probeOnce(
  link: MdnsLink,
  own: readonly ResourceRecord[],
  { timers, random, signal: ending, isOwnRecord: isOurs }: ProbeOptions,
): Promise<{ readonly claim: NameClaim; readonly how: RecordSource } | null> {
  let heard: { readonly claim: NameClaim; readonly how: RecordSource } | null = null;
  const answered = new AbortController();
  const signal = AbortSignal.any([ending, answered.signal]);
  const unlisten = link.onRecords((records, how) => {
    const conflict = detectConflict(own, records, how, isOurs);
    if (heard !== null || conflict === null || (how === 'probe' && !conflict.lost)) return;
    heard = { claim: conflict, how };
    answered.abort();
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
