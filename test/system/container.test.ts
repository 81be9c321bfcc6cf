import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { findMount, machineName } from '../../src/system/container.ts';
import { stateFolder } from '../support/state-folder.ts';

/** Lines as in proc_pid_mountinfo(5). */
const line = (mountPoint: string, { options = 'rw', type = 'ext4', superOptions = 'rw' } = {}) =>
  `36 35 98:0 /somewhere ${mountPoint} ${options},noatime master:1 - ${type} /dev/root ${superOptions},errors=continue\n`;

it('the mount of a path is the innermost one, the last of several, and that of its first existing parent', async () => {
  using folder = stateFolder();
  const path = join(folder.path, 'with a space');
  mkdirSync(join(path, 'inner'), { recursive: true });
  const table = join(folder.path, 'mountinfo');
  const find = (of: string) => findMount(of, table);
  writeFileSync(table, line('/', { type: 'overlay' }));
  expect(await find(path)).toMatchObject({ mountPoint: '/', type: 'overlay', isReadOnlyView: false });
  const escaped = path.replaceAll(' ', '\\040');
  writeFileSync(table, line('/') + line(escaped, { type: 'xfs' }) + line(`${escaped}/inn`, { type: 'nfs' }));
  for (const of of [path, join(path, 'inner'), join(path, 'absent/deeper')])
    expect(await find(of)).toMatchObject({ mountPoint: path, type: 'xfs', isReadOnlyView: false });
  writeFileSync(table, line(escaped, { type: 'xfs' }) + line(escaped, { type: 'tmpfs' }));
  expect((await find(path))?.type).toBe('tmpfs');
  expect(await findMount(path, join(folder.path, 'missing'))).toBeNull();
  // As for a directory that this user may not search: the volume is found by the path as it was given.
  writeFileSync(join(path, 'file'), '');
  writeFileSync(table, line('/') + line(escaped, { type: 'xfs' }));
  expect((await find(join(path, 'file/below')))?.type).toBe('xfs');
});

it('a mount says what is mounted, and where an overlay keeps its changes', async () => {
  using folder = stateFolder();
  const table = join(folder.path, 'mountinfo');
  const superOptions = 'rw,lowerdir=/media/root-ro,upperdir=/media/root\\040rw/overlay,workdir=/media/root-rw/work';
  writeFileSync(table, line('/', { type: 'overlay', superOptions }));
  const found = { source: '/dev/root', upperDirectory: '/media/root rw/overlay' };
  expect(await findMount('/', table)).toMatchObject(found);
  writeFileSync(table, line('/'));
  expect(await findMount('/', table)).toMatchObject({ upperDirectory: null });
});

it('a read-only view of a file system differs from a file system that is read-only itself', async () => {
  using folder = stateFolder();
  const table = join(folder.path, 'mountinfo');
  const isView = async (options: string, superOptions: string) => {
    writeFileSync(table, line('/', { options, superOptions }));
    return (await findMount('/', table))?.isReadOnlyView;
  };
  expect(await isView('ro', 'rw')).toBe(true);
  expect(await isView('ro', 'ro')).toBe(false);
  expect(await isView('rw', 'rw')).toBe(false);
});

it('only the generated host name of a container is replaced', () => {
  const container = { LATCHKEY_CONTAINER: '1' };
  expect(machineName(container, '3f2a9c81d0be')).toBe('latchkey');
  expect(machineName(container, 'cellar')).toBe('cellar');
  expect(machineName({}, '3f2a9c81d0be')).toBe('3f2a9c81d0be');
});
