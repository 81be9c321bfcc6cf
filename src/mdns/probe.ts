import type { Timers } from '../core/clock.ts';
import type { Random } from '../core/random.ts';
import type { Link, ReceivedRecord } from './link.ts';
import type { ResourceRecord } from './records.ts';

/** RFC 6762 section 8.1: three probes, 250 ms apart, after a random wait of up to as much. */
const PROBES = 3;
const PROBE_INTERVAL = 250;

export interface ProbeOptions {
  readonly timers: Timers;
  readonly random: Random;
  /** Ends the probing early. */
  readonly signal: AbortSignal;
}

/**
 * Asks the link whether somebody else holds one of these records' names (RFC 6762 section 8.1), which takes 0.75 to
 * 1 s. Of two hubs that probe at once, the one with the greater data gets the name, as in section 8.2: two of one name
 * start together whenever the power comes back.
 * @returns the name that is taken, in lower case, or null where all are free (or `signal` was aborted)
 * @throws Error as the socket gives it
 */
export async function probe(link: Link, own: readonly ResourceRecord[], options: ProbeOptions): Promise<string | null> {
  const { timers, random } = options;
  let taken: string | null = null;
  const answered = new AbortController();
  const signal = AbortSignal.any([options.signal, answered.signal]);
  const unlisten = link.onClaim((records, how) => {
    taken ??= claimedName(own, records, how);
    if (taken !== null) answered.abort();
  });
  try {
    await timers.sleep(random.fraction() * PROBE_INTERVAL, signal);
    for (let sent = 0; sent < PROBES && !signal.aborted; sent++) {
      await link.probe(own);
      await timers.sleep(PROBE_INTERVAL, signal);
    }
    return taken;
  } finally {
    unlisten();
  }
}

/**
 * The first of the hub's own names that somebody else has a better claim to, in lower case, or null. A goodbye (TTL 0)
 * is no claim: a hub that restarts hears its own. Only SRV and address records count; a TXT record comes with its SRV.
 */
function claimedName(
  own: readonly ResourceRecord[],
  received: readonly ReceivedRecord[],
  how: 'response' | 'probe',
): string | null {
  for (const record of received) {
    const theirs = claim(record);
    const name = record.name.toLowerCase();
    const mine = own.filter((one) => one.name.toLowerCase() === name).map(claim);
    if (theirs === null || record.ttl === 0 || mine.length === 0 || mine.includes(theirs)) continue;
    if (how === 'response' || mine.every((one) => one === null || one < theirs)) return name;
  }
  return null;
}

/** A record's type and data in a form that can be compared, or null where it claims nothing. */
function claim({ type, data }: Pick<ReceivedRecord, 'type' | 'data'>): string | null {
  if ((type === 'A' || type === 'AAAA') && typeof data === 'string') return `${type} ${data}`;
  if (type !== 'SRV' || typeof data !== 'object' || data === null || !('port' in data && 'target' in data)) return null;
  return `SRV ${String(data.target).toLowerCase()} ${data.port}`;
}
