import { CLOCK_FAILURE_OFFSET, CLOCK_WARNING_OFFSET, rfc3339 } from '../core/clock.ts';
import type { PortalCheck } from '../core/portals/portal-status.ts';
import type { PortalRoute } from './http.ts';
import { describeProbe, type ProbedAddress, probeOrigins } from './probe.ts';

/** What {@link checkConnections} needs. */
interface ConnectionContext {
  readonly route: PortalRoute;
  /** The hub's clock, in ms since 1970. */
  readonly wall: () => number;
}

/** How long a person waits for the probes, in ms. */
const TIMEOUT = 15_000;

/** Probes the origins of these addresses, and compares the hub's clock with that of the first one that reports its time. */
export async function checkConnections(
  addresses: readonly ProbedAddress[],
  { route, wall }: ConnectionContext,
): Promise<PortalCheck[]> {
  const probes = await probeOrigins(addresses, { route, wall, signal: AbortSignal.timeout(TIMEOUT) });
  const connections = probes.map((probe): PortalCheck => ({ name: 'tls', ...describeProbe(probe, wall()) }));
  const times = probes.flatMap(({ origin, outcome }) =>
    outcome.kind === 'answered' && outcome.clockAheadMs !== null
      ? [{ origin, ahead: outcome.clockAheadMs, now: wall() }]
      : [],
  );
  return [...connections, compareClocks(times[0])];
}

function compareClocks(
  compared: { readonly origin: string; readonly ahead: number; readonly now: number } | undefined,
): PortalCheck {
  if (compared === undefined)
    return { name: 'clock', result: 'warn', detail: 'the portal did not report its time: see "latchkey doctor"' };
  const { origin, ahead, now } = compared;
  const off = Math.abs(ahead);
  if (off <= CLOCK_WARNING_OFFSET)
    return { name: 'clock', result: 'ok', detail: `the clock of this machine agrees with ${origin}` };
  const by = `${Math.round(off / 1000)} s ${ahead > 0 ? 'ahead of' : 'behind'} ${origin}`;
  return {
    name: 'clock',
    result: off > CLOCK_FAILURE_OFFSET ? 'fail' : 'warn',
    detail: `the clock of this machine says ${rfc3339(now)}, ${by}: "latchkey doctor" says how to correct it`,
  };
}
