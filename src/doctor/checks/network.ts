import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { HubProblem } from '../../core/administration.ts';
import { messageOf } from '../../core/failure.ts';
import { readDefaultRoutes } from '../../mdns/networks/kernel.ts';
import { readLan } from '../../mdns/networks/lan-watch.ts';
import { browse, type DiscoveredHub } from '../../mdns/sockets/browse.ts';
import { systemTimers } from '../../system/clock.ts';
import { isInContainer } from '../../system/container.ts';
import { type CheckResult, type CheckResults, configurationInvalid, fail, ok, warn } from '../check-result.ts';
import { reachability } from '../container-network.ts';
import { type DoctorContext, isConfigurationKeyValid } from '../context.ts';

/** Reports the address at which the home network reaches the hub, and why it is that one. */
export async function checkNetwork(context: DoctorContext): Promise<CheckResults> {
  const { configuration, hub, env } = context;
  const { address: setting, listen, httpPort, httpsPort } = configuration.lan;
  if (!isConfigurationKeyValid(context, 'lan.address') && hub.kind === 'running' && hub.hub.address !== null)
    return ok(`the running hub reports the address ${hub.hub.address}`);
  try {
    const { address, addresses } = readLan(setting, listen);
    const interfaces = interfacesText();
    if (address === null) {
      if (setting === 'auto' && isInContainer(env)) {
        return fail(
          `this container has no address in a home network (${interfaces}): ${HOST_NETWORK}, or ${publishing(httpPort, httpsPort)}`,
        );
      }
      if (setting === 'auto')
        return fail(`this machine has no address in a home network (${interfaces}): check the cable or the Wi-Fi`);
      return fail(
        `lan.address is ${setting}, but no interface with an address has that name (${interfaces}): correct it or remove it`,
      );
    }
    const reachable = reachability(setting, address, env);
    if (reachable === 'published') {
      return ok(
        `${address.address}, as set in lan.address: the host of this container must have that address, and publish the ports ${httpPort} and ${httpsPort}`,
      );
    }
    if (reachable === 'isolated') {
      return warn(
        `${address.address} on ${address.interface} is in this container's own network, so other devices probably can't reach it: ${HOST_NETWORK}, or ${publishing(httpPort, httpsPort)}`,
      );
    }
    if (address.interface === null) {
      return warn(
        `lan.address is ${address.address}, but this machine does not have that address (${interfaces}): correct it, unless a router translates it`,
      );
    }
    if (address.loopback)
      return ok(
        `${address.address}: only this machine can reach the hub, because ${setting === 'auto' ? 'lan.listen names only it' : 'lan.address is set to it'}`,
      );
    const others = addresses.filter((other) => other !== address.address);
    const alternatives =
      others.length === 0 ? '' : `; also ${others.join(', ')}; if one of these is the right one, set it as lan.address`;
    const text = `${address.address} on ${address.interface}, ${addressReason(setting, listen, address.address, address.interface)}${alternatives}`;
    if (readDefaultRoutes().length > 0 || address.family === 'IPv6') return ok(text);
    return warn(
      `${text}; there is no default route, so the hub can't reach portals on the internet: check the router and DHCP`,
    );
  } catch (error) {
    return warn(`the interfaces could not be listed: ${messageOf(error)}`);
  }
}

/** What to do so that a container is in the home network. */
const HOST_NETWORK = 'start the container with "--network host"';

/** The other thing to do: the host forwards the ports. */
function publishing(httpPort: number, httpsPort: number): string {
  return `publish the ports ${httpPort} and ${httpsPort} and set lan.address (LATCHKEY_LAN_ADDRESS) to the host's address in the home network`;
}

function addressReason(setting: string, listen: readonly string[], address: string, name: string): string {
  if (setting !== 'auto') return isIP(setting) === 0 ? 'the interface of lan.address' : 'as set in lan.address';
  if (listen.includes(address)) return 'as set in lan.listen';
  return readDefaultRoutes()[0] === name ? 'which has the default route' : 'the first interface in a home network';
}

function interfacesText(): string {
  const all = Object.entries(networkInterfaces()).map(
    ([name, entries = []]) => `${name} ${entries.map(({ address }) => address).join(' ')}`,
  );
  return `interfaces: ${all.join(', ') || 'none'}`;
}

/** Checks whether other devices find the hub, with the same mDNS query that they send. */
export async function checkMdns(context: DoctorContext): Promise<CheckResults> {
  const { configuration, hub, env } = context;
  if (!isConfigurationKeyValid(context, 'lan.mdns')) return configurationInvalid('mDNS');
  const { lan } = configuration;
  if (!lan.mdns)
    return ok("the hub is not announced, because lan.mdns is false: enter the hub's IP address in the appliances");
  const { address, segments } = readLan(lan.address, lan.listen);
  if (address?.loopback) return ok('the hub is not announced, because only this machine can reach its address');
  if (reachability(lan.address, address, env) !== 'direct') {
    return warn(
      `mDNS does not leave this container's own network, so devices can't find the hub: ${HOST_NETWORK}, or set lan.mdns = false and enter the hub's IP address in the appliances`,
    );
  }
  const queried = segments.flatMap(({ interfaces }) =>
    interfaces.flatMap(({ name, ipv4 }) => (ipv4 === null ? [] : [{ name, ipv4 }])),
  );
  if (queried.length === 0) return warn('there is no IPv4 network for a query: check the cable or the Wi-Fi first');
  const id = hub.kind === 'running' ? hub.hub.id : null;
  const problems = hub.kind === 'running' ? (hub.hub.problems ?? []) : [];
  return Promise.all(
    queried.map(async ({ name, ipv4 }) => {
      try {
        return mdnsResult(name, await browse(ipv4, systemTimers), id, problems);
      } catch (error) {
        return fail(
          `on ${name} mDNS does not work (${messageOf(error)}): check whether another program uses UDP port 5353, or a firewall blocks it`,
          `.${name}`,
        );
      }
    }),
  );
}

function mdnsResult(
  interfaceName: string,
  discovered: readonly DiscoveredHub[],
  id: string | null,
  problems: readonly HubProblem[],
): CheckResult {
  const name = `.${interfaceName}`;
  const own = new Set(
    Object.values(networkInterfaces()).flatMap((entries = []) => entries.map(({ address }) => address)),
  );
  const otherHubs = discovered.filter(
    ({ addresses }) => addresses.length > 0 && !addresses.some((address) => own.has(address)),
  );
  const sameId = id === null ? undefined : otherHubs.find((hub) => hub.id === id);
  if (sameId !== undefined) {
    const where = `on ${interfaceName} another machine (${sameId.addresses.join(', ')})`;
    // Any device can announce an id. The hub itself finds out whether the other machine also has its key.
    if (problems.some(({ code }) => code === 'hub_id_taken')) {
      return fail(
        `${where} is a second hub with the same id ${id}, probably from a copied SD card: switch one of the two off`,
        name,
      );
    }
    return warn(
      `${where} announces this hub's id ${id}, but has not proved to have its key: appliances are safe, because they check the CA pin (ca_fingerprint); find that machine, and disconnect it from the network`,
      name,
    );
  }
  const others = otherHubs.length === 0 ? '' : `; other hubs: ${otherHubs.map(hubText).join(', ')}`;
  if (id === null)
    return warn(
      `on ${interfaceName} this could not be checked, because the hub is not running or this user has no access to it${others}`,
      name,
    );
  const found = discovered.find((hub) => hub.id === id);
  if (found !== undefined)
    return ok(`on ${interfaceName} devices find this hub as "${found.instance}", port ${found.port}${others}`, name);
  const reason =
    problems.find(({ code }) => code === 'not_announced')?.message ??
    'a firewall on this machine may block UDP port 5353';
  return fail(
    `on ${interfaceName} devices can't find this hub by mDNS (${reason}): open UDP port 5353, or enter the hub's IP address in the appliances${others}`,
    name,
  );
}

function hubText({ instance, site }: DiscoveredHub): string {
  return site === null ? instance : `${instance} (of the site ${site})`;
}
