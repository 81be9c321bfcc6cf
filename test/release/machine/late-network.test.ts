import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { PortalOnHost } from '../../netns/portal-on-host.ts';
import { eventually, stateParameterOf } from '../../support/hub-process.ts';
import { IS_LONG_FORM } from '../../support/long.ts';
import { machineSkipReason } from '../../support/machine.ts';
import type { Host } from '../../support/netns.ts';
import { stateFolder } from '../../support/state-folder.ts';
import { CONFIGURATION_FILE, configurationText, InstalledHub, SECRET_FILE } from './installed-hub.ts';
import { buildPackage } from './packages.ts';

const NAME = 'portal.test';
const DNSMASQ = '/usr/sbin/dnsmasq';
/** Seconds. */
const [WITHOUT_NETWORK, WITHOUT_DNS, TOKEN_LIFETIME] = IS_LONG_FORM ? [60, 20, 40] : [20, 10, 20];
/** The most lines that the daemon may log in any minute. */
const MAX_LINES_PER_MINUTE = 10;

describe('a hub that boots before its network', () => {
  it('a hub that boots without network and DNS runs with few log lines, and refreshes when both are there', async (ctx) => {
    const reason = await machineSkipReason([DNSMASQ, '/usr/bin/curl']);
    if (reason !== null) ctx.skip(reason);
    await using hub = await InstalledHub.boot();
    using folder = stateFolder();
    const caFile = join(folder.path, 'portal-ca.pem');
    await using portal = await PortalOnHost.startNamed(hub.peer, NAME, { tokenLifetime: TOKEN_LIFETIME, caFile });
    const { machine, host } = hub;
    const dns = startDns(hub.peer);
    await machine.write('/etc/resolv.conf', `nameserver ${hub.peer.address}\n`);
    await hub.installStopped(await buildPackage());
    await machine.write(CONFIGURATION_FILE, configurationText(portal, 'ca_file = "portal-ca.pem"'));
    await machine.write('/etc/latchkey/portal-ca.pem', readFileSync(caFile, 'utf8'));
    await machine.write(SECRET_FILE, portal.clientSecret, '600');
    await hub.start();
    const wallbox = await hub.addAppliance('wallbox');
    const state = stateParameterOf(await hub.beginPairing('wallbox'));
    await portal.sendCommand('POST', 'login', { state, user: 'demo' });
    await untilActive(hub);
    await dns.stop();

    await host.run('ip', ['link', 'set', 'eth0', 'down']);
    await host.run('ip', ['addr', 'flush', 'dev', 'eth0']);
    await machine.sh('rm /etc/resolv.conf');
    await machine.reboot();
    const pid = await machine.property('latchkey', 'MainPID');
    expect(await machine.property('latchkey', 'ActiveState')).toBe('active');
    await sleep(WITHOUT_NETWORK * 1000);
    const { hub: alone, appliances } = await hub.status();
    expect(alone.address).toBeNull();
    expect(appliances[0]).toMatchObject({
      state: 'retrying',
      problem: { code: expect.stringMatching(/clock_unknown|portal_unreachable/) },
    });

    // A router that is up but has no default route yet.
    await machine.write('/etc/resolv.conf', 'nameserver 10.77.0.99\n');
    await host.run('ip', ['link', 'set', 'eth0', 'up']);
    await host.run('ip', ['addr', 'add', `${host.address}/24`, 'dev', 'eth0']);
    await host.run('ip', ['route', 'add', 'default', 'via', hub.peer.address]);
    await eventually(async () => (await hub.status()).hub.address === host.address);
    await sleep(WITHOUT_DNS * 1000);
    expect((await hub.appliance('wallbox')).state).toBe('retrying');

    startDns(hub.peer);
    await machine.write('/etc/resolv.conf', `nameserver ${hub.peer.address}\n`);
    // The hub recovers automatically within a token's lifetime.
    await untilActive(hub);
    const authorization = `authorization: Bearer ${(await hub.token(wallbox))['access_token']}`;
    expect(await portal.ask('/api/whoami', '--header', authorization, '--write-out', '%{http_code}')).toMatch(/200$/);
    expect(await machine.property('latchkey', 'MainPID')).toBe(pid);
    expect(await machine.property('latchkey', 'NRestarts')).toBe('0');
    expect(maxPerMinute(await spoken(hub))).toBeLessThan(MAX_LINES_PER_MINUTE);
  });
});

/** Waits until the appliance has a token that lives. */
async function untilActive(hub: InstalledHub): Promise<void> {
  await eventually(async () => (await hub.appliance('wallbox')).state === 'active', TOKEN_LIFETIME);
}

/** The times of the daemon's lines in this boot, in seconds, in order. */
async function spoken({ machine }: InstalledHub): Promise<readonly number[]> {
  const lines = await machine.sh('journalctl --boot --output=json _SYSTEMD_UNIT=latchkey.service');
  return lines.split('\n').map((line) => Number(JSON.parse(line).__MONOTONIC_TIMESTAMP) / 1e6);
}

/** The number of lines in the minute that has the most. */
function maxPerMinute(times: readonly number[]): number {
  return Math.max(...times.map((from) => times.filter((time) => time >= from && time < from + 60).length));
}

function startDns(host: Host) {
  const own = ['--conf-file=/dev/null', '--no-resolv', '--no-hosts', '--pid-file', '--user=root', '--bind-interfaces'];
  return host.spawn(DNSMASQ, ['--keep-in-foreground', ...own, `--address=/${NAME}/${host.address}`]);
}
