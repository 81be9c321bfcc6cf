import { CompactEncrypt, compactDecrypt } from 'jose';
import { expect, test } from 'vitest';
import { jweSealing, KEY_BYTES } from '../../src/store/sealing.ts';

const key = new Uint8Array(KEY_BYTES).fill(7);
const sealing = jweSealing(key);
const TEXT = '{"accessToken":"Grüße"}';

test('what is sealed is a JWE as any library makes and opens it', async () => {
  const { plaintext, protectedHeader } = await compactDecrypt(await sealing.seal('grants/a/1', TEXT), key);
  expect(new TextDecoder().decode(plaintext)).toBe(TEXT);
  expect(protectedHeader).toEqual({ alg: 'dir', enc: 'A256GCM', row: 'grants/a/1' });

  const made = await new CompactEncrypt(new TextEncoder().encode(TEXT))
    .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', row: 'grants/a/1' })
    .encrypt(key);
  expect(await sealing.open('grants/a/1', made)).toBe(TEXT);
});

test('no two seals are alike, not even of the same text', async () => {
  const sealed = await Promise.all(Array.from({ length: 100 }, () => sealing.seal('grants/a/1', TEXT)));
  expect(new Set(sealed.map((jwe) => jwe.split('.')[2])).size).toBe(100);
});

test("a row can't be opened as another one", async () => {
  const sealed = await sealing.seal('grants/a/1', TEXT);
  await expect(sealing.open('grants/b/1', sealed)).rejects.toMatchObject({ code: 'store_unreadable' });
});

test('another key opens nothing', async () => {
  const other = jweSealing(new Uint8Array(KEY_BYTES).fill(8));
  await expect(other.open('grants/a/1', await sealing.seal('grants/a/1', TEXT))).rejects.toMatchObject({
    code: 'store_key_wrong',
  });
});

test.each([
  ['header', 0],
  ['initialization vector', 2],
  ['ciphertext', 3],
  ['tag', 4],
])('a %s that was changed, shortened or lost is seen', async (_name, part) => {
  const parts = (await sealing.seal('grants/a/1', TEXT)).split('.');
  const own = Buffer.from(parts[part] ?? '', 'base64url');
  const changes = [own.with(3, (own[3] ?? 0) ^ 1), own.subarray(0, 4), own.subarray(0, -1), Buffer.alloc(0)];
  for (const changed of changes) {
    const sealed = parts.with(part, Buffer.from(changed).toString('base64url')).join('.');
    await expect(sealing.open('grants/a/1', sealed)).rejects.toMatchObject({ code: 'store_key_wrong' });
  }
});

test.each([[''], ['....'], ['no JWE'], ['a.b.c']])('%j is nothing that was sealed', async (sealed) => {
  await expect(sealing.open('grants/a/1', sealed)).rejects.toMatchObject({ code: 'store_key_wrong' });
});
