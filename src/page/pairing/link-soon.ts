import type { Administration } from '../../core/administration.ts';
import type { Timers } from '../../core/clock.ts';

/** How long a page waits for a link, in ms: most portals give one within this, and nobody has to look at the page again for it. */
const PATIENCE = 2000;

/** Resolves when a pairing has a link, or something is in its way, but soon in any case. @throws Failure `pairing_unknown` */
export async function untilLinked(
  administration: Pick<Administration, 'followPairing'>,
  timers: Timers,
  pairing: string,
): Promise<void> {
  const patience = new AbortController();
  const disarm = timers.after(PATIENCE, () => patience.abort());
  try {
    for await (const report of administration.followPairing(pairing, patience.signal)) {
      if (report.event !== 'connecting' || report.problem !== null) return;
    }
  } finally {
    disarm();
  }
}
