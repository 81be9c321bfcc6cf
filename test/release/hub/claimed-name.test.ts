import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCurl, startTestModeHub, type TestModeHub } from '../../netns/hub-on-host.ts';
import { captureMdns, OBSERVER_TOOLS, observeWithZeroconf } from '../../netns/observers.ts';
import { readHubStatus, serveHub, waitForLogEvent, writeHubConfiguration } from '../../netns/served-hub.ts';
import { scaleDeadline } from '../../support/deadlines.ts';
import { eventually } from '../../support/hub-process.ts';
import { createLan, type Host, lanSkipReason, type Process } from '../../support/netns.ts';
import { skipIfUnavailable } from '../../support/set-up.ts';
import { stateFolder } from '../../support/state-folder.ts';

skipIfUnavailable(() => lanSkipReason([...OBSERVER_TOOLS, '/usr/bin/curl']));

describe("a hub whose host name another device claims without the hub's key", () => {
  it(
    'a hub whose host name is claimed uses another one with valid TLS, and takes its own back when it is free',
    async () => {
      await using lan = await createLan(['hub', 'claimant', 'observer']);
      const { claimant, observer } = lan.hosts;
      await using hub = await startTestModeHub(lan.hosts.hub);
      await hub.logged('hub_announced');
      const { id } = (await hub.status()).hub;
      const server = await serveTls(claimant, claimant.address);
      const claiming = await claim(claimant, claimant.address, 12, `${id}.local`);

      await hub.logged('hub_announced', (line) => line['host'] === `${id}-2.local`);
      const zeroconf = await observeWithZeroconf(observer);
      const found = await zeroconf.found(({ txt }) => txt['id'] === id);
      expect(found).toMatchObject({ host: `${id}-2.local`, addresses: ['10.77.0.1', 'fd77::1'] });
      expect(await metadataAt(observer, `${id}-2.local`, hub)).toHaveProperty('token_endpoint');
      expectSafe(await problemsOf(hub), claimant.address);
      await claiming.line((line) => line === 'sent' || undefined, scaleDeadline(60_000));
      expectSafe(await problemsOf(hub), claimant.address);
      expect(zeroconf.losses()).toEqual([]);
      expect(server.output).toContain('connected');

      await eventually(async () => (await problemsOf(hub)).length === 0, 120);
      const later = await observeWithZeroconf(observer);
      expect((await later.found(({ txt }) => txt['id'] === id)).host).toBe(`${id}.local`);
    },
    scaleDeadline(120_000),
  );

  it(
    'a hub is announced although another device was there first and claims each of its host names repeatedly',
    async () => {
      using folder = stateFolder();
      await using lan = await createLan(['hub', 'claimant', 'observer']);
      const { hub: machine, claimant, observer } = lan.hosts;
      writeHubConfiguration(folder.path);
      const firstRun = serveHub(machine, folder.path);
      await waitForLogEvent(firstRun, 'hub_started');
      const { id } = (await readHubStatus(folder.path)).hub;
      expect(await firstRun.stop()).toBe(0);
      const hosts = [id, `${id}-2`, `${id}-3`, `${id}-4`].map((name) => `${name}.local`);
      const claiming = await Promise.all(hosts.map((name) => claim(claimant, claimant.address, 24, name)));

      const hub = serveHub(machine, folder.path);
      await waitForLogEvent(hub, 'hub_announced');
      const captured = await captureMdns(observer);
      const problems = async () => (await readHubStatus(folder.path)).hub.problems ?? [];
      const zeroconf = await observeWithZeroconf(observer);
      for (let times = 0; times < 3; times++) {
        const zeroconf = await observeWithZeroconf(observer);
        expect(hosts).toContain((await zeroconf.found(({ txt }) => txt['id'] === id)).host);
        expectSafe(await problems(), claimant.address);
      }
      for (const one of claiming) await one.line((line) => line === 'sent' || undefined, scaleDeadline(60_000));
      expectSafe(await problems(), claimant.address);
      expect(zeroconf.losses()).toEqual([]);
      expect(hub.output).not.toContain('could not be announced');
      // The hub never stopped announcing its service, as it must while it probes for a name: it had no other host to
      // yield to.
      const probes = captured().filter(({ from, kind }) => from === machine.address && kind === 'probe');
      expect(probes.filter(({ text }) => text.includes('_latchkey'))).toEqual([]);
      expect(await hub.stop()).toBe(0);
    },
    scaleDeadline(120_000),
  );

  it('a hub whose host name is claimed connects to no address outside its own network', async () => {
    await using lan = await createLan(['hub', 'claimant', 'gateway']);
    const { hub: machine, claimant, gateway } = lan.hosts;
    await machine.run('ip', ['route', 'add', 'default', 'via', gateway.address]);
    await gateway.run('ip', ['addr', 'add', '198.51.100.9/32', 'dev', 'lo']);
    const far = await serveTls(gateway, '198.51.100.9');
    await using hub = await startTestModeHub(machine);
    await hub.logged('hub_announced');
    const { id } = (await hub.status()).hub;
    await claim(claimant, '198.51.100.9', 9, `${id}.local`);
    await hub.logged('hub_announced', (line) => line['host'] === `${id}-2.local`);
    expectSafe(await problemsOf(hub), '198.51.100.9');
    expect(far.output).not.toContain('connected');
  });
});

function expectSafe(problems: readonly { code: string; message: string }[], address: string) {
  expect(problems).toEqual([
    { code: 'hub_name_claimed', message: expect.stringContaining(address), since: expect.any(String) },
  ]);
  expect(problems[0]?.message).toMatch(/^Another device .* Appliances are safe/);
  expect(problems[0]?.message).not.toMatch(/card|afresh|anew/);
}

async function problemsOf(hub: TestModeHub) {
  return (await hub.status()).hub.problems ?? [];
}

/** The claimant says ten times a second, and in answer to each probe, that it has this host name. */
async function claim(host: Host, claimed: string, seconds: number, name: string): Promise<Process> {
  const script = join(import.meta.dirname, '../../netns/mdns-sender.ts');
  const claims = [String(seconds * 10), '100', 'address', name, claimed, 'respond'];
  const claiming = host.spawn(process.execPath, [script, host.address, ...claims]);
  await claiming.line((line) => line === 'ready' || undefined);
  return claiming;
}

async function serveTls(host: Host, address: string): Promise<Process> {
  const server = host.spawn(process.execPath, [join(import.meta.dirname, '../../netns/tls-server.ts'), address]);
  await server.line((line) => line === 'listening' || undefined);
  return server;
}

/** The OAuth metadata of the hub, by its host name. */
async function metadataAt(from: Host, name: string, hub: TestModeHub): Promise<unknown> {
  const resolve = ['--resolve', `${name}:8443:10.77.0.1`, '--cacert', hub.caFile];
  return JSON.parse(await runCurl(from, [...resolve, `https://${name}:8443/.well-known/oauth-authorization-server`]));
}
