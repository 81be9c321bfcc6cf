import {
  chmodSync,
  chownSync,
  lchownSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadStoreKey } from '../../src/store/keys/store-key.ts';
import { ensureStateDirectory } from '../../src/store/state-directory.ts';
import { systemRandom } from '../../src/system/random.ts';
import { stateFolder } from '../support/state-folder.ts';

const freshKey = () => systemRandom.token(32);
const noKey = () => {
  throw new Error('a key was made');
};

test('a missing state directory is created with mode 0700', async () => {
  using folder = stateFolder();
  const path = join(folder.path, 'a', 'b');
  await ensureStateDirectory(path);
  expect(statSync(path).mode & 0o777).toBe(0o700);
  await ensureStateDirectory(path);
});

test.each([0o755, 0o750, 0o701, 0o770])(
  'a state directory with mode %o is refused, and the message names the chmod command',
  async (mode) => {
    using folder = stateFolder();
    chmodSync(folder.path, mode);
    await expect(ensureStateDirectory(folder.path)).rejects.toMatchObject({
      code: 'state_dir_unusable',
      message: expect.stringContaining(`chmod 700 ${folder.path}`),
    });
  },
);

test('a state directory that is a file is refused', async () => {
  using folder = stateFolder();
  const path = join(folder.path, 'file');
  writeFileSync(path, '');
  await expect(ensureStateDirectory(path)).rejects.toMatchObject({ code: 'state_dir_unusable' });
  await expect(ensureStateDirectory(join(path, 'below'))).rejects.toMatchObject({ code: 'state_dir_unusable' });
});

test('a state directory that another user owns, or reaches by a symlink of that user, is refused, also for root', async (ctx) => {
  if (process.getuid?.() !== 0) ctx.skip('giving files away needs root');
  using folder = stateFolder();
  const theirs = join(folder.path, 'theirs');
  const own = join(folder.path, 'own');
  const link = join(folder.path, 'link');
  for (const path of [theirs, own]) mkdirSync(path, { mode: 0o700 });
  chownSync(theirs, 4711, 4711);
  const refusal = {
    code: 'state_dir_unusable',
    message: expect.stringMatching(/belongs to another user \(uid 4711\): run Latchkey as that user, or name another/),
  };
  await expect(ensureStateDirectory(theirs)).rejects.toMatchObject(refusal);
  symlinkSync(own, link);
  await ensureStateDirectory(link);
  lchownSync(link, 4711, 4711);
  await expect(ensureStateDirectory(link)).rejects.toMatchObject(refusal);
});

test('the first start creates a store key that only its user can read, and later starts use it', async () => {
  using folder = stateFolder();
  const made = await loadStoreKey(folder.path, undefined, freshKey);
  expect(made).toHaveLength(32);
  expect(statSync(join(folder.path, 'store.key')).mode & 0o777).toBe(0o600);
  expect(Buffer.from(await loadStoreKey(folder.path, undefined, noKey))).toEqual(Buffer.from(made));
});

test('a store key that others can read is refused', async () => {
  using folder = stateFolder();
  await loadStoreKey(folder.path, undefined, freshKey);
  chmodSync(join(folder.path, 'store.key'), 0o640);
  await expect(loadStoreKey(folder.path, undefined, noKey)).rejects.toMatchObject({
    code: 'store_key_wrong',
    message: expect.stringContaining('chmod 600'),
  });
});

test.each(['latchkey.db', 'latchkey.db.copy'])(
  'a store key that is missing beside %s is not created again',
  async (store) => {
    using folder = stateFolder();
    writeFileSync(join(folder.path, store), 'grants');
    await expect(loadStoreKey(folder.path, undefined, noKey)).rejects.toMatchObject({
      code: 'store_key_wrong',
      message: expect.stringMatching(/is missing.*restore the key/),
    });
  },
);

test.each(['', 'c2hvcnQ', `${'A'.repeat(43)}AAAA`, '!'.repeat(43), '\u0000'.repeat(32)])(
  'the store key %j is refused and left as it is',
  async (text) => {
    using folder = stateFolder();
    const path = join(folder.path, 'store.key');
    writeFileSync(path, text, { mode: 0o600 });
    await expect(loadStoreKey(folder.path, undefined, noKey)).rejects.toMatchObject({ code: 'store_key_wrong' });
    expect(readFileSync(path, 'utf8')).toBe(text);
  },
);

test('a store key from a systemd credential takes precedence over the file, and nothing is written', async () => {
  using folder = stateFolder();
  const credentials = join(folder.path, 'credentials');
  mkdirSync(credentials);
  const text = freshKey();
  writeFileSync(join(credentials, 'store.key'), `${text}\n`);
  const key = await loadStoreKey(folder.path, credentials, noKey);
  expect(Buffer.from(key).toString('base64url')).toBe(text);
  expect(() => statSync(join(folder.path, 'store.key'))).toThrow(/ENOENT/);
});

test('the key file is used without a credential, and an unreadable credential creates no other key', async () => {
  using folder = stateFolder();
  const credentials = join(folder.path, 'credentials');
  mkdirSync(credentials);
  const made = await loadStoreKey(folder.path, credentials, freshKey);
  expect(Buffer.from(await loadStoreKey(folder.path, credentials, noKey))).toEqual(Buffer.from(made));
  mkdirSync(join(credentials, 'store.key'));
  await expect(loadStoreKey(folder.path, credentials, noKey)).rejects.toMatchObject({
    code: 'store_key_wrong',
    message: expect.stringContaining(credentials),
  });
});
