import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startTestModeHub, warningsOf } from '../../netns/hub-on-host.ts';
import { OBSERVER_TOOLS, observeWithZeroconf } from '../../netns/observers.ts';
import { scaleDeadline } from '../../support/deadlines.ts';
import { eventually } from '../../support/hub-process.ts';
import { createLan, type Host, lanSkipReason, type Process } from '../../support/netns.ts';
import { skipIfUnavailable } from '../../support/set-up.ts';

skipIfUnavailable(() => lanSkipReason(OBSERVER_TOOLS));

describe('a hub beside a device with faulty mDNS', () => {
  it('the hub still responds after thousands of malformed packets, and reports at most that its name is claimed', async () => {
    await using lan = await createLan(['hub', 'peer', 'observer']);
    const { peer, observer } = lan.hosts;
    const fuzzer = run(peer, 'mdns-fuzz.ts', [peer.address, '20261122', '5000']);
    await using hub = await startTestModeHub(lan.hosts.hub);
    await hub.logged('hub_announced');
    // Packets to mutate: a host's query, and the response.
    const before = await (await observeWithZeroconf(observer)).found();
    await fuzzer.line((line) => line === 'sent' || undefined, scaleDeadline(20_000));

    expect((await (await observeWithZeroconf(observer)).found()).txt).toEqual(before.txt);
    expect(hub.process.child.exitCode).toBeNull();
    // A packet that is almost the hub's own may claim that the hub is at another address, as any device may.
    const warnings = warningsOf(hub.process).filter((line) => !line.includes('hub_name_claimed'));
    expect(warnings).toEqual([]);
    expect(linesOf(hub.process, 'hub_announced').length).toBeLessThan(6);
    expect(await hub.process.stop('SIGTERM')).toBe(0);
  });

  it('the hub stays announced with few log lines, whichever of its names another device claims', async () => {
    await using lan = await createLan(['hub', 'peer', 'observer']);
    const { peer, observer } = lan.hosts;
    await using hub = await startTestModeHub(lan.hosts.hub);
    await hub.logged('hub_announced');
    const { name, id } = (await hub.status()).hub;
    // The peer claims each of the hub's names, ten times a second, with data that is greater than the hub's, and does
    // not respond to queries.
    const names = [name, `${name} (${id.slice(id.lastIndexOf('-') + 1).slice(0, 4)})`, id];
    const senders = names.map((claimed) =>
      run(peer, 'mdns-sender.ts', [peer.address, '60', '100', 'service', claimed, `${'z'.repeat(63)}.local`]),
    );
    await hub.logged('hub_name_claimed');
    const codes = ((await hub.status()).hub.problems ?? []).map(({ code }) => code);
    expect(codes).toEqual(['hub_name_claimed']);
    for (const sender of senders) await sender.line((line) => line === 'sent' || undefined, scaleDeadline(20_000));
    const found = await eventually(async () => {
      const zeroconf = await observeWithZeroconf(observer);
      return zeroconf.found(({ txt }) => txt['id'] === id).catch(() => false as const);
    }, 60);
    expect(names).toContain(found.instanceName);
    expect(hub.process.child.exitCode).toBeNull();
    expect([...linesOf(hub.process, 'hub_announced'), ...warningsOf(hub.process)].length).toBeLessThan(6);
    expect(warningsOf(hub.process).join()).not.toContain('could not be announced');
  });
});

function run(host: Host, script: string, args: readonly string[]): Process {
  return host.spawn(process.execPath, [join(import.meta.dirname, '../../netns', script), ...args]);
}

function linesOf({ output }: Process, event: string): readonly string[] {
  return output.split('\n').filter((line) => line.includes(`"event":"${event}"`));
}
