import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { NeighbourTable } from '../../../src/system/limits/neighbour-table.ts';
import { stateFolder } from '../../support/state-folder.ts';

const TABLE = [
  { dst: 'fe80::1', dev: 'eth0', lladdr: '02:00:00:00:00:01', state: ['REACHABLE'] },
  { dst: 'fe80::1', dev: 'wlan0', lladdr: '02:00:00:00:00:02', state: ['STALE'] },
  { dst: 'fd00::7', dev: 'eth0', lladdr: '02:00:00:00:00:07', router: null, state: ['DELAY'] },
  { dst: 'fd00::8', dev: 'eth0', state: ['FAILED'] },
];

/** A replacement of ip(8). @returns its path, and the arguments of each run */
function program(folder: string, stdout: string) {
  const [path, runs] = [join(folder, 'ip'), join(folder, 'runs')];
  writeFileSync(join(folder, 'stdout'), stdout);
  appendFileSync(runs, '');
  writeFileSync(path, `#!/bin/sh\necho "$@" >>${runs}\ncat ${folder}/stdout\n`, { mode: 0o700 });
  return { path, runs: () => readFileSync(runs, 'utf8').split('\n').filter(Boolean) };
}

test("the neighbour table finds a neighbour's link-layer address on its own interface", async () => {
  using folder = stateFolder();
  const ip = program(folder.path, JSON.stringify(TABLE));
  const links = new NeighbourTable(ip.path);
  expect(await links.findLinkLayerAddress('fd00::7')).toBe('02:00:00:00:00:07');
  expect(await links.findLinkLayerAddress('fe80::1%eth0')).toBe('02:00:00:00:00:01');
  expect(await links.findLinkLayerAddress('fe80::1%wlan0')).toBe('02:00:00:00:00:02');
  expect(await links.findLinkLayerAddress('fe80::1%eth1')).toBe(null);
  expect(await links.findLinkLayerAddress('fd00::8')).toBe(null);
  expect(await links.findLinkLayerAddress('fd00::9')).toBe(null);
});

test('many simultaneous look-ups of link-layer addresses share two runs of the program', async () => {
  using folder = stateFolder();
  const ip = program(folder.path, JSON.stringify(TABLE));
  const links = new NeighbourTable(ip.path);
  const first = links.findLinkLayerAddress('fd00::7');
  await Promise.resolve();
  const rest = await Promise.all(Array.from({ length: 50 }, () => links.findLinkLayerAddress('fd00::7')));
  expect(new Set([await first, ...rest])).toEqual(new Set(['02:00:00:00:00:07']));
  expect(ip.runs().length).toBeLessThanOrEqual(2);
});

test.each([
  ['prints something else', '{"dst":"fd00::7"}'],
  ['does not exit', null],
  ['is missing', undefined],
])('no link-layer address is found if the program %s', async (_, stdout) => {
  using folder = stateFolder();
  const path = join(folder.path, 'ip');
  if (stdout === null) writeFileSync(path, '#!/bin/sh\nexec sleep 60\n', { mode: 0o700 });
  else if (stdout !== undefined) program(folder.path, stdout);
  const links = new NeighbourTable(path);
  expect(await links.findLinkLayerAddress('fd00::7')).toBe(null);
  expect(await links.findLinkLayerAddress('fd00::7')).toBe(null);
});
