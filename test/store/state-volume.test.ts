import { expect, it } from 'vitest';
import { describeVolatileState, requireVolume } from '../../src/store/state-directory.ts';

const PATH = '/var/lib/latchkey';
const on =
  (mountPoint: string, type = 'ext4', isReadOnlyView = false) =>
  async () => ({ mountPoint, type, isReadOnlyView, source: '/dev/root', upperDirectory: null });

it('a state directory is accepted on any volume, and if its place is not known', async () => {
  await requireVolume(PATH, on(PATH));
  await requireVolume(PATH, on('/var/lib', 'nfs4'));
  await requireVolume(PATH, async () => null);
});

it.each([
  ['the root file system', on('/', 'overlay'), /is not on a volume, so all grants would be lost/],
  ['memory', on(PATH, 'tmpfs'), /is on a memory file system \(tmpfs\), so all grants would be lost/],
  ['a read-only volume', on(PATH, 'ext4', true), /is mounted read-only: remove "ro"/],
])('a state directory on %s is refused', async (_where, find, message) => {
  await expect(requireVolume(PATH, find)).rejects.toMatchObject({
    code: 'state_dir_unusable',
    message: expect.stringMatching(message),
  });
});

/** Mounts by the start of a path; the first that fits counts. */
function mounted(
  ...mounts: readonly [path: string, type: string, more?: { source?: string; upperDirectory?: string }][]
) {
  return async (path: string) => {
    const [mountPoint, type, more] = mounts.find(([start]) => path.startsWith(start)) ?? ['/', 'ext4'];
    return { mountPoint, type, isReadOnlyView: false, source: '/dev/mmcblk0p2', upperDirectory: null, ...more };
  };
}

const overlay = (upperDirectory: string) => ['/', 'overlay', { upperDirectory }] as const;

it.each<[string, Parameters<typeof describeVolatileState>[1], message: RegExp | null]>([
  ['an SD card', mounted(['/', 'ext4']), null],
  ['a place that the kernel does not name', async () => null, null],
  ['a file system in memory', mounted([PATH, 'tmpfs']), /latchkey \(hub\.state_dir\) is in memory \(tmpfs\)$/],
  ['a disk in memory', mounted([PATH, 'ext4', { source: '/dev/zram1' }]), /is in memory \(ext4\)$/],
  [
    'an overlay in memory',
    mounted(['/media/root-rw', 'tmpfs'], [...overlay('/media/root-rw/overlay')]),
    /keeps all changes in memory$/,
  ],
  ['an overlay whose changes are out of sight', mounted([...overlay('/upper/data')]), /keeps all changes in memory$/],
  ['an overlay on a disk', mounted(['/data', 'ext4'], [...overlay('/data/upper')]), null],
  [
    'a disk of its own beside an overlay in memory',
    mounted([PATH, 'ext4'], ['/media', 'tmpfs'], [...overlay('/media/rw')]),
    null,
  ],
])('a state directory on %s outlives a reboot, or the hub knows that it does not', async (_, find, message) => {
  const found = await describeVolatileState(PATH, find, false, (path) => path !== '/upper/data');
  if (message === null) expect(found).toBeNull();
  else expect(found).toMatch(message);
});

it('an overlay of a container, whose changes are on the host, outlives a reboot', async () => {
  expect(
    await describeVolatileState(PATH, mounted(['/tmp', 'tmpfs'], [...overlay('/tmp/nspawn/diff')]), true),
  ).toBeNull();
});
