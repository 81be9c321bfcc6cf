import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { reachability } from '../../src/doctor/container-network.ts';
import { stateFolder } from '../support/state-folder.ts';

const IN_CONTAINER = { LATCHKEY_CONTAINER: '1' };
const onEth0 = { address: '10.88.0.2', family: 'IPv4', interface: 'eth0', loopback: false } as const;
const ofHost = { ...onEth0, address: '192.168.1.5', interface: null };

/** The kernel's files as a container sees them, with a network of its own or with that of the host. */
function kernelFiles(folder: string, { hasHostNetwork = false, deviceType = '' } = {}) {
  const paths = { sysctls: join(folder, 'sysctls'), interfaces: join(folder, 'interfaces') };
  for (const path of [paths.sysctls, join(paths.interfaces, 'eth0')]) mkdirSync(path, { recursive: true });
  writeFileSync(join(paths.sysctls, 'somaxconn'), '4096');
  if (hasHostNetwork) writeFileSync(join(paths.sysctls, 'netdev_max_backlog'), '1000');
  writeFileSync(join(paths.interfaces, 'eth0/uevent'), `${deviceType}INTERFACE=eth0\nIFINDEX=2\n`);
  return paths;
}

it("an address that was found in a container's own network is isolated, and one that the owner has set is not", () => {
  using folder = stateFolder();
  const paths = kernelFiles(folder.path);
  expect(reachability('auto', onEth0, IN_CONTAINER, paths)).toBe('isolated');
  expect(reachability('192.168.1.5', ofHost, IN_CONTAINER, paths)).toBe('published');
  for (const setting of ['eth0', '10.88.0.2'])
    expect(reachability(setting, onEth0, IN_CONTAINER, paths)).toBe('direct');
  expect(reachability('auto', { ...onEth0, loopback: true }, IN_CONTAINER, paths)).toBe('direct');
  expect(reachability('auto', null, IN_CONTAINER, paths)).toBe('direct');
});

it('outside of the image, in the network of the host and on a macvlan interface an address is reached directly', () => {
  using host = stateFolder();
  using macvlan = stateFolder();
  expect(reachability('auto', onEth0, {}, kernelFiles(macvlan.path))).toBe('direct');
  expect(reachability('auto', onEth0, IN_CONTAINER, kernelFiles(host.path, { hasHostNetwork: true }))).toBe('direct');
  const paths = kernelFiles(macvlan.path, { deviceType: 'DEVTYPE=macvlan\n' });
  expect(reachability('auto', onEth0, IN_CONTAINER, paths)).toBe('direct');
});
