import { existsSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Failure } from '../../src/core/failure.ts';
import { STORE_KEY_BYTES } from '../../src/store/keys/sealing.ts';
import { openWithSiteKey } from '../../src/store/keys/store-key.ts';
import { systemRandom } from '../../src/system/random.ts';
import { stateFolder } from '../support/state-folder.ts';

let folder: ReturnType<typeof stateFolder>;
beforeEach(() => {
  folder = stateFolder();
});
afterEach(() => folder[Symbol.dispose]());

/** A site whose rows are sealed with a key; null if it is empty. */
interface FakeSite {
  key: string | null;
}

/** Opens a site as a store does: the first key seals it. */
function openSite(site: FakeSite, credentials?: string): Promise<string> {
  const freshKey = () => systemRandom.token(STORE_KEY_BYTES);
  return openWithSiteKey({ stateDirectory: folder.path, credentials, freshKey }, async (bytes) => {
    const key = Buffer.from(bytes).toString('base64url');
    site.key ??= key;
    if (site.key !== key) throw new Failure('store_key_wrong', 'it was sealed with another key');
    return key;
  });
}

const file = (name = 'store.key') => join(folder.path, name);
const KEY = Buffer.alloc(STORE_KEY_BYTES, 7).toString('base64url');

describe('the store key of a site', () => {
  it('the first hub of an empty site gets a new key in a file, and uses it again', async () => {
    const site = { key: null };
    const key = await openSite(site);
    expect(readFileSync(file(), 'utf8')).toBe(`${key}\n`);
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    expect(existsSync(file('store.key.new'))).toBe(false);
    expect(await openSite(site)).toBe(key);
  });

  it('a hub without a key does not join a site with data, and says to copy the key', async () => {
    const site = { key: KEY };
    const joined = openSite(site);
    await expect(joined).rejects.toMatchObject({ code: 'store_key_wrong' });
    await expect(joined).rejects.toThrow(/copy the store key of another hub/);
    expect(existsSync(file())).toBe(false);
    expect(existsSync(file('store.key.new'))).toBe(false);
    writeFileSync(file(), KEY, { mode: 0o600 });
    expect(await openSite(site)).toBe(KEY);
  });

  it('a hub with another key than the site keeps its key, and fails', async () => {
    const own = Buffer.alloc(STORE_KEY_BYTES, 8).toString('base64url');
    writeFileSync(file(), own, { mode: 0o600 });
    await expect(openSite({ key: KEY })).rejects.toThrow('it was sealed with another key');
    expect(readFileSync(file(), 'utf8')).toBe(own);
  });

  it('a hub that lost power after it sealed the site finds its key', async () => {
    const site: FakeSite = { key: null };
    await openSite(site);
    renameSync(file(), file('store.key.new'));
    expect(await openSite(site)).toBe(site.key);
    expect(readFileSync(file(), 'utf8').trim()).toBe(site.key);
  });

  it('a database that is away costs no key', async () => {
    const freshKey = () => systemRandom.token(STORE_KEY_BYTES);
    const keys: string[] = [];
    const open = () =>
      openWithSiteKey({ stateDirectory: folder.path, credentials: undefined, freshKey }, async (key) => {
        keys.push(Buffer.from(key).toString('base64url'));
        throw new Failure('database_unavailable', 'it can not be reached');
      });
    await expect(open()).rejects.toThrow('it can not be reached');
    await expect(open()).rejects.toThrow('it can not be reached');
    expect(new Set(keys).size).toBe(1);
    expect(existsSync(file())).toBe(false);
  });

  it('a credential is the key of the site, and no file is written', async () => {
    writeFileSync(file('secrets_store.key'), KEY, { mode: 0o600 });
    expect(await openSite({ key: null }, folder.path)).toBe(KEY);
    expect(existsSync(file())).toBe(false);
  });
});
