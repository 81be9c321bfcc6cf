import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { messageOf } from '../core/failure.ts';
import { readDefaultRoutes } from '../mdns/default-route.ts';
import { readLan } from '../mdns/lan-watch.ts';
import { fail, ok, type Said, warn } from './finding.ts';
import type { Subject } from './subject.ts';

/** Which address the home network reaches the hub at, and why that one. */
export async function checkNetwork({ configuration }: Subject): Promise<Said[]> {
  const { address: setting, listen } = configuration?.lan ?? { address: 'auto', listen: ['0.0.0.0', '::'] };
  try {
    const { address, addresses } = readLan(setting, listen);
    const there = interfacesInWords();
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
    if (address.loopback) return [ok(`${address.address}, for this machine alone, by lan.address`)];
    const others = addresses.filter((one) => one !== address.address);
    const beside = others.length === 0 ? '' : `; also ${others.join(', ')}; set lan.address where another is right`;
    const what = `${address.address} on ${address.interface}, ${why(setting, address.interface)}${beside}`;
    if (readDefaultRoutes().length > 0 || address.family === 'IPv6') return [ok(what)];
    return [
      warn(`${what}; there is no default route, so that no portal beyond it is reached: check the router and DHCP`),
    ];
  } catch (error) {
    return [warn(`the interfaces could not be listed: ${messageOf(error)}`)];
  }
}

function why(setting: string, name: string): string {
  if (setting !== 'auto') return isIP(setting) === 0 ? 'the interface that lan.address names' : 'as lan.address says';
  return readDefaultRoutes()[0] === name ? 'which has the default route' : 'the first that leads into a home network';
}

function interfacesInWords(): string {
  const all = Object.entries(networkInterfaces()).map(
    ([name, entries = []]) => `${name} ${entries.map(({ address }) => address).join(' ')}`,
  );
  return `there are: ${all.join(', ') || 'none'}`;
}
