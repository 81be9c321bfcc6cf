import { isIP } from 'node:net';
import type { PortalConfiguration } from '../configuration/portals.ts';
import { helperAddresses } from '../portal/helper/helper-portal.ts';
import { contactedAddresses } from '../portal/oauth2/portal-checks.ts';
import { type PortalProbe, type ProbedAddress, probeOrigins, type ResolvedAddress } from '../portal/probe.ts';
import { execProgram } from './systemd-unit.ts';

/**
 * Probes every origin of these portals.
 * @param wall this machine's clock, in ms since 1970
 */
export async function probePortals(
  portals: readonly PortalConfiguration[],
  wall: () => number,
  signal: AbortSignal,
  env: NodeJS.ProcessEnv,
): Promise<PortalProbe[]> {
  const lookup = (host: string) => resolveAddresses(host, signal, env);
  const probes = portals.map((portal) => probeOrigins(addressesOf(portal), { route: portal, wall, signal, lookup }));
  return (await Promise.all(probes)).flat();
}

/** The configured addresses that the hub sends requests to, each with the key that names it. */
function addressesOf(portal: PortalConfiguration): ProbedAddress[] {
  if (portal.type === 'oauth2') {
    const { settings } = portal;
    return contactedAddresses(portal.name, settings, settings.endpoints, true);
  }
  return helperAddresses(portal.name, portal);
}

/**
 * Looks a name up as the system does. It runs in another process, because a lookup in this process can't be cancelled:
 * if no DNS server responds, it would delay the end of the process for half a minute.
 * @throws Error with a message for people
 */
async function resolveAddresses(host: string, signal: AbortSignal, env: NodeJS.ProcessEnv): Promise<ResolvedAddress[]> {
  if (isIP(host) !== 0) return [{ address: host, family: isIP(host) }];
  const text = await execProgram('getent', ['ahosts', host], signal, env);
  const candidates = (text ?? '').split('\n').map((line) => line.split(/\s+/)[0] ?? '');
  const addresses = [...new Set(candidates)].filter((address) => isIP(address) !== 0);
  if (addresses.length === 0)
    throw new Error(signal.aborted ? 'no response in time' : 'the name does not exist, or no DNS server responds');
  return addresses.map((address) => ({ address, family: isIP(address) }));
}
