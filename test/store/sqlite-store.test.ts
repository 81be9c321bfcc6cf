import { expect, test } from 'vitest';
import { instantAt, sampleGrant } from '../core/samples.ts';
import { memoryStateFolder } from '../support/state-folder.ts';
import { addAppliance, open, WALLBOX } from './test-store.ts';

test('a deleted grant leaves nothing but its generation', async () => {
  using folder = memoryStateFolder();
  using store = open(folder.path);
  await addAppliance(store, WALLBOX);
  await store.grants.replace(sampleGrant({ connection: WALLBOX.id }));
  await store.grants.rejectAccessToken(WALLBOX.id, 1, instantAt(9));
  await store.grants.forget(WALLBOX.id, 1);
  const nothing = { sealed: null, doubt: null, refused: null, distrusted: null, misconfigured: null };
  expect((await store.readAllRows()).grants.get(WALLBOX.id)).toMatchObject({ generation: 2, ...nothing });
});
