import { expect, it } from 'vitest';
import { logIn, runCurl } from '../../netns/hub-on-host.ts';
import { PortalOnHost } from '../../netns/portal-on-host.ts';
import { HubProcess } from '../../support/hub-process.ts';
import { createLan, type Host, lanSkipReason, type Process } from '../../support/netns.ts';
import { MAIN } from '../../support/program.ts';
import { skipIfUnavailable } from '../../support/set-up.ts';

skipIfUnavailable(() => lanSkipReason(['/usr/bin/curl']));

it('pair gets a fresh link when the address of the hub changes, and a login through either link counts', async () => {
  await using lan = await createLan(['hub']);
  const machine = lan.hosts.hub;
  await using hub = await hubOn(machine);
  for (const name of ['wallbox', 'heater']) await hub.addAppliance(name);
  const follow = (name: string) =>
    machine.spawn(process.execPath, [MAIN, 'pair', name, '--json', '--config', `${hub.directory}/latchkey.toml`]);
  const wallbox = follow('wallbox');
  const heater = follow('heater');
  const old = await linkIn(heater);
  await linkIn(wallbox);

  const change = ['addr flush dev eth0', 'addr add 10.77.0.201/24 dev eth0'].map((command) => `ip ${command}`);
  await machine.run('sh', ['-c', change.join(' && ')]);
  const { authorize_url: fresh = '', short_url = '' } = await reportIn(wallbox, 'waiting', 'address_changed');
  expect(fresh).not.toBe(old);
  // The short link of the small QR code leads there, too.
  expect(new URL(short_url).host).toBe(`10.77.0.201:${hub.httpPort}`);
  expect(await runCurl(machine, ['--write-out', '%{redirect_url}', short_url])).toBe(fresh);
  const page = await logIn(machine, fresh, '--write-out', '\n%{url_effective}');
  expect(page).toContain('You can close this page');
  expect(new URL(page.split('\n').at(-1) ?? '').host).toBe(`10.77.0.201:${hub.httpPort}`);
  await reportIn(wallbox, 'paired');

  // Nothing listens at the address that this browser is redirected to, and the code comes by polling.
  await linkIn(heater, 'address_changed');
  await expect(logIn(machine, old, '--max-time', '2')).rejects.toThrow();
  await reportIn(heater, 'paired');
});

/** A hub on this host, with an emulator whose address does not change. */
async function hubOn(machine: Host): Promise<HubProcess> {
  return HubProcess.start({
    emulator: await PortalOnHost.start(machine),
    env: { LATCHKEY_LAN_ADDRESS: 'auto', LATCHKEY_LAN_LISTEN: '0.0.0.0', LATCHKEY_LAN_MDNS: 'false' },
    within: ['/usr/sbin/ip', 'netns', 'exec', machine.namespace],
  });
}

interface Report {
  readonly event: string;
  readonly authorize_url?: string;
  readonly short_url?: string;
  readonly reason?: string;
}

function reportIn(pair: Process, event: string, reason?: string): Promise<Report> {
  return pair.line((text) => {
    const report: Report = JSON.parse(text);
    return report.event === event && report.reason === reason ? report : undefined;
  });
}

async function linkIn(pair: Process, reason?: string): Promise<string> {
  return (await reportIn(pair, 'waiting', reason)).authorize_url ?? '';
}
