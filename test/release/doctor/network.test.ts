import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { NamedCheckResult } from '../../../src/doctor/check-result.ts';
import { finding } from '../../doctor/finding.ts';
import { announceOn, waitForAnnouncerEvent } from '../../netns/announcer-process.ts';
import { occupyMdnsPort } from '../../netns/mdns-port.ts';
import { readHubStatus, serveHub, waitForLogEvent, writeHubConfiguration } from '../../netns/served-hub.ts';
import { scaleDeadline } from '../../support/deadlines.ts';
import { createLan, type Host, lanSkipReason } from '../../support/netns.ts';
import { MAIN, SHARED_CACHE } from '../../support/program.ts';
import { skipIfUnavailable } from '../../support/set-up.ts';
import { stateFolder } from '../../support/state-folder.ts';

skipIfUnavailable(() => lanSkipReason(['/usr/bin/python3']));

/** What the doctor finds on a host, and its exit status. */
async function runDoctor(host: Host, home: string): Promise<{ checks: NamedCheckResult[]; status: number | null }> {
  const env = { PATH: process.env['PATH'], HOME: home, XDG_CACHE_HOME: SHARED_CACHE };
  const doctor = host.spawn(process.execPath, [MAIN, 'doctor', '--json', '--config', `${home}/latchkey.toml`], { env });
  const json = await doctor.line((line) => (line.startsWith('{') ? line : undefined), scaleDeadline(30_000));
  const status = await doctor.end(scaleDeadline(5000));
  return { checks: (JSON.parse(json) as { checks: NamedCheckResult[] }).checks, status };
}

it('the doctor finds the hub over mDNS, and another machine with its hub id', async () => {
  using folder = stateFolder();
  await using lan = await createLan(['original', 'copy']);
  const [card, copied] = [join(folder.path, 'card'), join(folder.path, 'copied')];
  writeHubConfiguration(card);
  const firstRun = serveHub(lan.hosts.original, card);
  await waitForLogEvent(firstRun, 'hub_started');
  expect(await firstRun.stop('SIGTERM')).toBe(0);
  cpSync(card, copied, { recursive: true });
  writeHubConfiguration(copied);
  const original = serveHub(lan.hosts.original, card);
  await waitForLogEvent(original, 'hub_announced');

  const alone = await runDoctor(lan.hosts.original, card);
  expect(finding(alone.checks, 'mdns.eth0')).toMatch(/^ok: on eth0 devices find this hub as "Cellar hub", port 8443$/);
  expect(finding(alone.checks, 'network')).toMatch(/^warn: 10\.77\.0\.1 on eth0, .*no default route/);
  expect(finding(alone.checks, 'ports.https_port')).toMatch(/^ok: /);

  const copy = serveHub(lan.hosts.copy, copied);
  await waitForLogEvent(copy, 'announcement_failed');
  const { checks, status } = await runDoctor(lan.hosts.copy, copied);
  expect(status).toBe(1);
  expect(finding(checks, 'hub')).toMatch(/^fail: .*card was copied/);
  expect(finding(checks, 'mdns.eth0')).toMatch(
    /^fail: .*another machine \(.*10\.77\.0\.1.*\) is a second hub with the same id latchkey-/,
  );
});

it('the doctor does not call a device a copy of the hub if it only announces its hub id', async () => {
  using folder = stateFolder();
  await using lan = await createLan(['hub', 'claimant']);
  const home = join(folder.path, 'hub');
  writeHubConfiguration(home);
  const { hub, claimant } = lan.hosts;
  const daemon = serveHub(hub, home);
  await waitForLogEvent(daemon, 'hub_announced');
  const { id } = (await readHubStatus(home)).hub;
  await hub.isolate('on');
  await claimant.isolate('on');
  await waitForAnnouncerEvent(announceOn(claimant, { id, instanceName: 'Attic hub' }), 'ready');
  await claimant.isolate('off');
  await waitForLogEvent(daemon, 'hub_name_claimed');
  const { checks } = await runDoctor(hub, home);
  expect(finding(checks, 'hub')).toMatch(/^warn: .*10\.77\.0\.2/);
  expect(finding(checks, 'mdns.eth0')).toMatch(
    /^warn: .*another machine \(.*10\.77\.0\.2.*\) announces this hub's id latchkey-.*safe/,
  );
});

it('the doctor reports that the hub hangs, and that the network is away', async () => {
  using folder = stateFolder();
  await using lan = await createLan(['hub']);
  const home = join(folder.path, 'hub');
  writeHubConfiguration(home);
  const { hub } = lan.hosts;
  const daemon = serveHub(hub, home);
  await waitForLogEvent(daemon, 'hub_announced');
  daemon.child.kill('SIGSTOP');

  await hub.run('/usr/sbin/ip', ['link', 'set', 'eth0', 'down']);
  const elsewhere = await runDoctor(hub, home);
  expect(finding(elsewhere.checks, 'network')).toMatch(/^fail: .*check the cable or the Wi-Fi/);
  expect(finding(elsewhere.checks, 'hub')).toMatch(
    /^fail: .*does not respond on its control socket \(no response within 4 s\)/,
  );
  daemon.child.kill('SIGCONT');
});

it('the doctor ends although the network drops everything, and another program has the mDNS port', async () => {
  using folder = stateFolder();
  await using lan = await createLan(['hub']);
  const home = join(folder.path, 'hub');
  writeHubConfiguration(home);
  const file = join(home, 'latchkey.toml');
  const toml = readFileSync(file, 'utf8')
    .replace('base_url = "http://127.0.0.1:9"', 'base_url = "https://198.51.100.7"')
    .replace('frontend_url = "http://127.0.0.1:9"', 'frontend_url = "https://portal.example"');
  writeFileSync(file, toml);
  const { hub } = lan.hosts;
  const ip = (...args: string[]) => hub.run('/usr/sbin/ip', args);
  // A router that accepts every packet and forwards none.
  await ip('neigh', 'add', '10.77.0.254', 'lladdr', '02:00:00:00:00:01', 'dev', 'eth0');
  await ip('route', 'add', 'default', 'via', '10.77.0.254');
  await occupyMdnsPort(hub);
  const { checks, status } = await runDoctor(hub, home);
  expect(status).toBe(1);
  expect(finding(checks, 'mdns.eth0')).toMatch(
    /^fail: .*EADDRINUSE.*: check whether another program uses UDP port 5353/,
  );
  expect(finding(checks, 'portal.home.base_url')).toMatch(/^fail: .*no connection \(no response in time\)/);
  expect(finding(checks, 'portal.home.frontend_url')).toMatch(
    /^fail: .*the name portal\.example could not be looked up/,
  );
});
