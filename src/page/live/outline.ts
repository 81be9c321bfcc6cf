import type { Administration } from '../../core/administration.ts';

/** Milliseconds by which a planned refresh may seem to move because it is told in whole seconds. */
const TOLERANCE = 10_000;

type Status = Awaited<ReturnType<Administration['status']>>;

/** What pages show of the hub, without what passes with every second. */
export interface Outline {
  readonly fixed: string;
  /** When refreshes are due, on the boot clock, in ms; by appliance. */
  readonly dues: readonly (number | null)[];
}

/**
 * @param status with what changes whenever a pairing does
 * @param uptime on the boot clock, in ms
 */
export function outlineOf(
  { hub, appliances, notices, pairings }: Status & { readonly pairings?: string },
  uptime: number,
): Outline {
  const { uptime: _, registrationOpenFor, ...house } = hub;
  const fixed = appliances.map(({ expiresIn, refreshIn, problem, ...appliance }) => ({
    ...appliance,
    serves: expiresIn !== null && expiresIn > 0,
    // Its words may count seconds.
    problem: problem && { code: problem.code, since: problem.since },
  }));
  return {
    fixed: JSON.stringify([
      { ...house, open: registrationOpenFor !== undefined },
      fixed,
      notices.map(({ code, appliance, since }) => [code, appliance, since]),
      pairings,
    ]),
    dues: appliances.map(({ refreshIn }) => (refreshIn === null ? null : uptime + refreshIn * 1000)),
  };
}

/** Whether a page that shows the one would show something else of the other. */
export function hasChanged(before: Outline, after: Outline): boolean {
  if (before.fixed !== after.fixed) return true;
  return after.dues.some((due, index) => {
    const known = before.dues[index] ?? null;
    return due === null || known === null ? due !== known : Math.abs(due - known) > TOLERANCE;
  });
}
