import { setTimeout as sleep } from 'node:timers/promises';
import { scaleDeadline } from '../../support/deadlines.ts';

/**
 * The result of some work, which goes on if it takes longer.
 * @param ms the longest time that it takes on a quiet machine
 */
export async function withDeadline<Result>(work: Promise<Result>, ms: number): Promise<Result> {
  const timer = new AbortController();
  const late = sleep(scaleDeadline(ms), undefined, { signal: timer.signal }).then(() => {
    throw new Error(`no result within ${scaleDeadline(ms)} ms`);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    timer.abort();
    late.catch(() => undefined);
  }
}
