import { expect, it } from 'vitest';
import { requireVolume } from '../../src/store/state-volume.ts';

const PATH = '/var/lib/latchkey';
const on =
  (mountPoint: string, type = 'ext4', isReadOnlyView = false) =>
  async () => ({ mountPoint, type, isReadOnlyView });

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
