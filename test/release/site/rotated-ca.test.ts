// A rotation of the CA at one of two hubs, which are processes, with a real PostgreSQL server.
import { expect, test } from 'vitest';
import type { Emulator } from '../../../src/emulator/index.ts';
import { copyStoreKey, fullStatus, prepareSiteHub } from '../../site/site-hubs.ts';
import { eventually } from '../../support/hub-process.ts';
import { rememberSecrets } from '../../support/logs.ts';
import { startPortal } from '../../support/portal.ts';
import { postgresSkipReason } from '../../support/postgres/cluster.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres/server.ts';
import { setUpOnce, skipIfUnavailable } from '../../support/set-up.ts';

skipIfUnavailable(postgresSkipReason);

let server: PostgresServer;
let emulator: Emulator;
setUpOnce(async (parts) => {
  server = parts.use(await startPostgres());
  emulator = parts.use(await startPortal());
});

test('when one hub has a new CA, the other one serves it too, and starts again for that only once', async () => {
  const database = await server.createDatabase();
  await using attic = await prepareSiteHub(database, 'attic', { emulator });
  await attic.launch();
  await using cellar = await prepareSiteHub(database, 'cellar', { emulator });
  await copyStoreKey(attic, cellar);
  await cellar.launch();
  const former = (await cellar.authority()).fingerprint;
  expect(await attic.cli('ca', '--rotate', '--yes')).toMatchObject({ status: 0 });
  const { fingerprint } = await attic.authority();
  expect(fingerprint).not.toBe(former);
  await eventually(async () => {
    const status = await fullStatus(cellar).catch(() => null);
    return status?.hub.ca_fingerprint === fingerprint;
  });
  expect((await cellar.authority()).fingerprint).toBe(fingerprint);
  // News of settings that are not the CA's.
  expect((await attic.cli('setup-code', '--rotate')).status).toBe(0);
  const { code } = await attic.ask((control) => control.setupCode());
  rememberSecrets([code]);
  await eventually(async () => (await cellar.ask((control) => control.setupCode())).code === code);
  expect(cellar.events('hub_restarting')).toHaveLength(1);
  expect(attic.events('hub_restarting')).toEqual([]);
});
