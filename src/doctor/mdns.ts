import { networkInterfaces } from 'node:os';
import type { HubProblem } from '../core/administration.ts';
import { messageOf } from '../core/failure.ts';
import { browse, type SeenHub } from '../mdns/browse.ts';
import { readLan } from '../mdns/lan-watch.ts';
import { systemTimers } from '../system/clock.ts';
import { fail, ok, type Said, warn } from './finding.ts';
import type { Subject } from './subject.ts';

/** Whether the hub is found by its neighbours, by asking as they do. */
export async function checkMdns({ configuration, hub }: Subject): Promise<Said[]> {
  if (configuration === null) return [warn('mDNS could not be tried: see to the configuration first')];
  const { lan } = configuration;
  if (!lan.mdns) return [ok('the hub is not announced, by lan.mdns; appliances have to know its address')];
  const { address, neighbourhoods } = readLan(lan.address, lan.listen);
  if (address?.loopback) return [ok('the hub is not announced on loopback')];
  const doors = neighbourhoods.flatMap(({ interfaces }) =>
    interfaces.flatMap(({ name, ipv4 }) => (ipv4 === null ? [] : [{ name, ipv4 }])),
  );
  if (doors.length === 0) return [warn('there is no network over IPv4 to ask on: see to the network first')];
  const id = hub.kind === 'running' ? hub.hub.id : null;
  const problems = hub.kind === 'running' ? (hub.hub.problems ?? []) : [];
  return Promise.all(
    doors.map(async ({ name, ipv4 }) => {
      try {
        return judge(name, await browse(ipv4, systemTimers), id, problems);
      } catch (error) {
        return fail(
          `on ${name} mDNS can't be spoken (${messageOf(error)}): check what else has UDP port 5353, and the firewall`,
          `.${name}`,
        );
      }
    }),
  );
}

function judge(door: string, seen: readonly SeenHub[], id: string | null, problems: readonly HubProblem[]): Said {
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
