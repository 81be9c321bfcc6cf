import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { readDefaultRoutes } from '../../src/mdns/networks/kernel.ts';

const HEADER = 'Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT   \n';

it.each([
  ['an empty table', '', []],
  ['a link without a gateway', 'eth0\t0001A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n', []],
  ['one default route', 'eth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n', ['eth0']],
  [
    'two, the better one first',
    'wlan0\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\neth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n',
    ['eth0', 'wlan0'],
  ],
  ['half of the internet through a tunnel', 'tun0\t00000000\t0101A8C0\t0003\t0\t0\t0\t00000080\t0\t0\t0\n', []],
  ['a route that refuses', 'lo\t00000000\t00000000\t0201\t0\t0\t0\t00000000\t0\t0\t0\n', []],
])("the hub reads %s from the kernel's routes", async (_, lines, expected) => {
  const directory = await mkdtemp(join(tmpdir(), 'latchkey-route-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const file = join(directory, 'route');
  await writeFile(file, HEADER + lines);
  expect(readDefaultRoutes(file)).toEqual(expected);
});

it('the hub finds no default route if the kernel has no table', () => {
  expect(readDefaultRoutes('/nonexistent/route')).toEqual([]);
});
