import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createLan, lanSkipReason } from '../support/netns.ts';
import { skipIfUnavailable } from '../support/set-up.ts';

skipIfUnavailable(() => lanSkipReason(['/usr/bin/unshare']));

it('in its systemd sandbox the hub can read default route and IPv6 flags, and notices an unplugged cable', async () => {
  await using lan = await createLan(['hub']);
  const { hub } = lan.hosts;
  await hub.run('ip', ['route', 'add', 'default', 'via', '10.77.0.9']);
  const kernel = join(import.meta.dirname, '../../src/mdns/networks/kernel.ts');
  const program = `
    import { interfaceChangeMarker, readDefaultRoutes, readIpv6Flags } from '${kernel}';
    console.log(JSON.stringify([readDefaultRoutes(), interfaceChangeMarker('eth0'), interfaceChangeMarker('eth9'), readIpv6Flags().size]));`;
  // The same as ProcSubset=pid and ProtectKernelTunables=yes.
  const sandbox = 'mount -t proc -o subset=pid proc /proc; mount -o remount,ro,bind /sys; exec "$@"';
  const look = async (): Promise<[routes: string[], epoch: string, none: string, flags: number]> => {
    const run = [process.execPath, '--input-type=module', '-e', program];
    return JSON.parse(await hub.run('/usr/bin/unshare', ['--mount', 'sh', '-ec', sandbox, 'sh', ...run]));
  };
  const [routes, epoch, none, flags] = await look();
  expect(routes).toEqual(['eth0']);
  expect(flags).toBeGreaterThan(0);
  await hub.plug('down');
  await hub.plug('up');
  expect((await look())[1]).not.toBe(epoch);
  expect(none).toBe('/');
});
