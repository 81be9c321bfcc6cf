import { CLOCK_FAILURE_OFFSET, CLOCK_WARNING_OFFSET, rfc3339 } from '../core/clock.ts';
import type { PortalCheck } from '../core/portals/portal-status.ts';
import type { PooledHttpClient } from './http.ts';

/** What {@link checkConnections} needs. */
interface ConnectionContext {
  readonly http: PooledHttpClient;
  /** The portal's name in the configuration. */
  readonly portal: string;
  /** The hub's clock, in ms since 1970. */
  readonly wall: () => number;
}

/**
 * Sends a HEAD request without a secret to each origin, and compares the hub's clock with that of the first one that
 * reports its time.
 * @param addresses URLs; their origins are checked once each
 */
export async function checkConnections(
  addresses: readonly string[],
  { http, portal, wall }: ConnectionContext,
): Promise<PortalCheck[]> {
  const origins = [...new Set(addresses.map((address) => new URL(address).origin))];
  const results = await Promise.all(
    origins.map(async (origin) => {
      const exchange = await http.send('HEAD', new URL('/', origin));
      return { origin, exchange, now: wall() };
    }),
  );
  const connections = results.map(({ origin, exchange }): PortalCheck => {
    if (exchange.kind === 'no_answer') {
      const advice =
        exchange.certificateError === undefined
          ? `check the internet connection, any firewall or proxy, and portals.${portal}.ca_file if the portal has a CA of its own`
          : 'if the clock of this machine is wrong, correct it ("latchkey doctor"); if it is right, ask the operator of the portal';
      return {
        name: 'tls',
        result: 'fail',
        detail: `no trusted connection to ${origin} (${exchange.detail}): ${advice}`,
      };
    }
    const { status } = exchange.response;
    if (status === 511)
      return {
        name: 'tls',
        result: 'fail',
        detail: `the network requires a login (HTTP 511 at ${origin}): log in there`,
      };
    if (status >= 500)
      return {
        name: 'tls',
        result: 'warn',
        detail: `${origin} responds with an error of its own (HTTP ${status}): wait`,
      };
    const isEncrypted = origin.startsWith('https:');
    const detail = isEncrypted
      ? `the certificate of ${origin} is trusted`
      : `${origin} responds, unencrypted on this machine`;
    return { name: 'tls', result: 'ok', detail };
  });
  const times = results.flatMap(({ origin, exchange, now }) => {
    const portalTime = exchange.kind === 'answer' ? exchange.response.portalTime : null;
    return portalTime === null ? [] : [{ origin, ahead: now - portalTime, now }];
  });
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
