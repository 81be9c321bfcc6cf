import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { instantAt, SAMPLE_LINK, sampleGrant, samplePairing } from '../core/samples.ts';
import { memoryStateFolder } from '../support/state-folder.ts';
import { addAppliance, open, readFilesAsText, WALLBOX } from './test-store.ts';

const first = sampleGrant({ connection: WALLBOX.id, generation: 1 });
const DEVICE = {
  appliance: '11111111-1111-4111-8111-111111111111',
  codeHash: 'hash-of-the-device-code',
  userCode: 'WDJB-MJHT',
};
const OTHER_LINK = { ...SAMPLE_LINK, codeUrl: `${SAMPLE_LINK.codeUrl}-of-earlier` };

async function withWallbox(path: string) {
  const store = open(path);
  await addAppliance(store, WALLBOX);
  return store;
}

test('a deleted grant leaves nothing but its generation', async () => {
  using folder = memoryStateFolder();
  using store = await withWallbox(folder.path);
  await store.replaceGrant(first);
  await store.markTokenRejected(WALLBOX.id, 1, instantAt(9));
  await store.forgetGrant(WALLBOX.id, 1);
  const nothing = { sealed: null, doubt: null, refused: null, distrusted: null, misconfigured: null };
  expect((await store.readAllRows()).grants.get(WALLBOX.id)).toMatchObject({ generation: 2, ...nothing });
});

test('the files of the store contain no secret in plain text, neither in the database nor in the WAL', async () => {
  using folder = memoryStateFolder();
  {
    using store = await withWallbox(folder.path);
    await store.saveSetting('setup_code', 'the-setup-code');
    await store.replaceGrant(first);
    await store.savePairing(
      samplePairing({ kind: 'waiting', link: SAMPLE_LINK, earlier: [OTHER_LINK] }, { device: DEVICE }),
    );
    expect(existsSync(join(folder.path, 'latchkey.db-wal'))).toBe(true);
    expect(readFilesAsText(folder.path)).toContain('wallbox');
    expect(readFilesAsText(folder.path)).not.toMatch(
      /the-(setup-code|access-token|refresh-token|nonce|state)|sso\/authorize|MJHT/,
    );
  }
  expect(readFilesAsText(folder.path)).toContain('wallbox');
  expect(readFilesAsText(folder.path)).not.toMatch(
    /the-(setup-code|access-token|refresh-token|nonce|state)|sso\/authorize|MJHT/,
  );
});
