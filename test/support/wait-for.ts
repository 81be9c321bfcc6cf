import { vi } from 'vitest';
import { scaleDeadline } from './deadlines.ts';

/** Calls `look` until it no longer throws. @param ms the longest time that it takes on a quiet machine */
export function waitFor<Result>(look: () => Result | Promise<Result>, ms = 5000, interval = 50): Promise<Result> {
  return vi.waitFor(look, { timeout: scaleDeadline(ms), interval });
}
