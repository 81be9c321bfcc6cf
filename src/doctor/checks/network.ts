import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { HubProblem } from '../../core/administration.ts';
import { messageOf } from '../../core/failure.ts';
import { readDefaultRoutes } from '../../mdns/networks/kernel.ts';
import { readLan } from '../../mdns/networks/lan-watch.ts';
import { browse, type DiscoveredHub } from '../../mdns/sockets/browse.ts';
import { systemTimers } from '../../system/clock.ts';
import { type CheckResult, configurationInvalid, fail, ok, warn } from '../check-result.ts';
import { type DoctorContext, hasValidKey } from '../context.ts';

/** Which address the home network reaches the hub at, and why that one. */
export async function checkNetwork(context: DoctorContext): Promise<CheckResult[]> {
  const { configuration, hub } = context;
  const { address: setting, listen } = configuration.lan;
  if (!hasValidKey(context, 'lan.address') && hub.kind === 'running' && hub.hub.address !== null)
    return [ok(`${hub.hub.address}, the running hub says`)];
  try {
    const { address, addresses } = readLan(setting, listen);
    const there = interfacesText();
    if (address === null) {
      if (setting === 'auto')
        return [fail(`no interface has an address of a home network (${there}): check the cable or the Wi-Fi`)];
      return [
        fail(
          `lan.address names ${setting}, which no interface with an address is called (${there}): correct it, or leave it out`,
        ),
      ];
    }
    if (address.interface === null) {
      return [
        warn(
          `lan.address names ${address.address}, which no interface has (${there}): correct it, unless a router translates it`,
        ),
      ];
    }
    if (address.loopback) return [ok(`${address.address}, which only this machine reaches, as lan.address says`)];
    const others = addresses.filter((one) => one !== address.address);
    const beside = others.length === 0 ? '' : `; also ${others.join(', ')}; set lan.address where another is right`;
    const what = `${address.address} on ${address.interface}, ${addressReason(setting, address.interface)}${beside}`;
    if (readDefaultRoutes().length > 0 || address.family === 'IPv6') return [ok(what)];
    return [
      warn(`${what}; there is no default route, so that no portal beyond it is reached: check the router and DHCP`),
    ];
  } catch (error) {
    return [warn(`the interfaces could not be listed: ${messageOf(error)}`)];
  }
}

function addressReason(setting: string, name: string): string {
  if (setting !== 'auto') return isIP(setting) === 0 ? 'the interface that lan.address names' : 'as lan.address says';
  return readDefaultRoutes()[0] === name ? 'which has the default route' : 'the first that leads into a home network';
}

function interfacesText(): string {
  const all = Object.entries(networkInterfaces()).map(
    ([name, entries = []]) => `${name} ${entries.map(({ address }) => address).join(' ')}`,
  );
  return `there are: ${all.join(', ') || 'none'}`;
}

/** Whether the hub is found by its neighbours, by asking as they do. */
export async function checkMdns(context: DoctorContext): Promise<CheckResult[]> {
  const { configuration, hub } = context;
  if (!hasValidKey(context, 'lan.mdns')) return [configurationInvalid('mDNS')];
  const { lan } = configuration;
  if (!lan.mdns) return [ok('the hub is not announced, by lan.mdns; appliances have to know its address')];
  const { address, segments } = readLan(lan.address, lan.listen);
  if (address?.loopback) return [ok('the hub is not announced: only this machine reaches its address')];
  const doors = segments.flatMap(({ interfaces }) =>
    interfaces.flatMap(({ name, ipv4 }) => (ipv4 === null ? [] : [{ name, ipv4 }])),
  );
  if (doors.length === 0) return [warn('there is no network over IPv4 to ask on: see to the network first')];
  const id = hub.kind === 'running' ? hub.hub.id : null;
  const problems = hub.kind === 'running' ? (hub.hub.problems ?? []) : [];
  return Promise.all(
    doors.map(async ({ name, ipv4 }) => {
      try {
        return mdnsResult(name, await browse(ipv4, systemTimers), id, problems);
      } catch (error) {
        return fail(
          `on ${name} mDNS can't be spoken (${messageOf(error)}): check what else has UDP port 5353, and the firewall`,
          `.${name}`,
        );
      }
    }),
  );
}

function mdnsResult(
  door: string,
  seen: readonly DiscoveredHub[],
  id: string | null,
  problems: readonly HubProblem[],
): CheckResult {
  const name = `.${door}`;
  const own = new Set(
    Object.values(networkInterfaces()).flatMap((entries = []) => entries.map(({ address }) => address)),
  );
  const strangers = seen.filter(({ addresses }) => addresses.length > 0 && !addresses.some((one) => own.has(one)));
  const twin = id === null ? undefined : strangers.find((one) => one.id === id);
  if (twin !== undefined) {
    const where = `on ${door} another machine (${twin.addresses.join(', ')})`;
    // Anybody can announce an id: whether the other one has the hub's key too is for the hub to find out.
    if (problems.some(({ code }) => code === 'hub_id_taken')) {
      return fail(
        `${where} has this hub's id ${id}: two hubs must not live on one copy of a card: stop one of them`,
        name,
      );
    }
    return warn(
      `${where} announces this hub's id ${id}, which does not make it this hub: appliances are safe, because they check the pin; find it, and take it off the network`,
      name,
    );
  }
  const others = strangers.length === 0 ? '' : `; other hubs: ${strangers.map(({ instance }) => instance).join(', ')}`;
  if (id === null)
    return warn(`on ${door} nothing is announced while the hub does not run, or may not be asked${others}`, name);
  const found = seen.find((one) => one.id === id);
  if (found !== undefined)
    return ok(`on ${door} this hub is found as "${found.instance}", port ${found.port}${others}`, name);
  const why =
    problems.find(({ code }) => code === 'not_announced')?.message ??
    'UDP port 5353 may be closed by a firewall on this machine';
  return fail(
    `on ${door} this hub is not found over mDNS (${why}): open UDP port 5353, or give appliances the hub's address${others}`,
    name,
  );
}
