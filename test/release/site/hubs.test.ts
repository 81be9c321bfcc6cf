// Hubs of one site as processes, with a real PostgreSQL server.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Emulator } from '../../../src/emulator/index.ts';
import { STORE_KEY_BYTES } from '../../../src/store/keys/sealing.ts';
import { copyStoreKey, fullStatus, prepareSiteHub } from '../../site/site-hubs.ts';
import { eventually, type HubProcess } from '../../support/hub-process.ts';
import { rememberSecrets } from '../../support/logs.ts';
import { startPortal } from '../../support/portal.ts';
import { postgresSkipReason } from '../../support/postgres/cluster.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres/server.ts';
import { setUpOnce } from '../../support/set-up.ts';

let server: PostgresServer;
let emulator: Emulator;
setUpOnce(
  async (parts) => {
    server = parts.use(await startPostgres());
    emulator = parts.use(await startPortal());
  },
  { skipReason: postgresSkipReason },
);

const stateFile = (hub: HubProcess, name: string) => join(hub.directory, 'state', name);

/** The conditions of a hub as a whole. */
async function hubConditions(hub: HubProcess): Promise<string[]> {
  return (await fullStatus(hub)).conditions.filter(({ connection }) => connection === null).map(({ code }) => code);
}

test('two hubs of a site have one CA and one store key, and status lists both until one is removed', async () => {
  const database = await server.createDatabase();
  await using attic = await prepareSiteHub(database, 'attic', { emulator });
  await attic.launch();
  await using cellar = await prepareSiteHub(database, 'cellar', { emulator });

  await expect(cellar.launch()).rejects.toThrow(/has no store key.*copy the store key of another hub/);
  writeFileSync(stateFile(cellar, 'store.key'), Buffer.alloc(STORE_KEY_BYTES, 9).toString('base64url'), {
    mode: 0o600,
  });
  await expect(cellar.launch()).rejects.toThrow(/store\.key is not the one of its site/);
  await copyStoreKey(attic, cellar);
  await cellar.launch();

  expect((await cellar.authority()).fingerprint).toBe((await attic.authority()).fingerprint);
  const ids = [attic, cellar].map((hub) => readFileSync(stateFile(hub, 'hub-id'), 'utf8').trim());
  expect(new Set(ids).size).toBe(2);
  const listed = await eventually(async () => {
    const { site } = await fullStatus(attic);
    return site?.hubs.length === 2 && site.hubs.every(({ address }) => address !== null) && site;
  });
  const common = { address: '127.0.0.1', version: expect.any(String), last_seen: expect.stringMatching(/^20.*Z$/) };
  expect(listed).toEqual({
    id: expect.stringMatching(/^site-[0-9a-f]{8}$/),
    hubs: [
      { ...common, id: ids[0], name: 'attic', this_hub: true },
      { ...common, id: ids[1], name: 'cellar' },
    ],
  });
  const text = (await cellar.cli('status')).stdout;
  expect(text).toContain(`Hubs of the site ${listed.id}:`);
  expect(text).toMatch(new RegExp(`attic +${ids[0]} +127\\.0\\.0\\.1 +\\S+ +\\S`));
  expect(text).toMatch(new RegExp(`cellar +${ids[1]} +127\\.0\\.0\\.1 +\\S+ +this hub`));

  const running = await attic.cli('site', 'remove', 'cellar');
  expect(running.stderr).toContain('the hub cellar is running: stop it first');
  await cellar.kill();
  await server.sql(
    database,
    `UPDATE latchkey.hubs SET last_seen = last_seen - interval '11 minutes' WHERE name = 'cellar'`,
  );
  await eventually(async () => (await hubConditions(attic)).includes('hub_missing'));
  const [problem] = (await fullStatus(attic)).hub.problems ?? [];
  expect(problem?.message).toContain(`A hub of the site has not been seen: cellar (${ids[1]}) since 20`);
  expect((await attic.cli('site', 'remove', 'garage')).stderr).toContain('the site has no hub garage');
  const removed = await attic.cli('site', 'remove', 'cellar');
  expect(removed).toMatchObject({ status: 0, stderr: 'the hub cellar is removed from the list\n' });
  expect((await fullStatus(attic)).site?.hubs.map(({ name }) => name)).toEqual(['attic']);
  expect(await hubConditions(attic)).toEqual([]);
});

test('a hub that starts while the database is away waits and says why, stops when told, and starts when it is back', async () => {
  await using own = await startPostgres();
  const database = await own.createDatabase();
  await own.stop();
  await using hub = await prepareSiteHub(database, 'attic', { emulator });
  const stopped = hub.launch().catch((error: Error) => error.message);
  const awaited = await eventually(async () => existsSync(hub.log) && hub.events('waiting_for_database')[0]);
  expect(awaited['error']).toMatch(/database \S+ on localhost:\d+ can't be reached \(.*ECONNREFUSED/);
  expect(existsSync(stateFile(hub, 'control.sock'))).toBe(false);
  await hub.kill('SIGTERM');
  expect(await stopped).toContain('the hub exited (0)');
  expect(hub.events().map(({ event }) => event)).toContain('hub_stopping');

  const started = hub.launch();
  await eventually(async () => existsSync(hub.log) && hub.events('waiting_for_database')[0]);
  await own.start();
  await started;
  expect((await fullStatus(hub)).site?.hubs).toHaveLength(1);
});

test('a hub with a URL of another database does not start, and says so without the password', async () => {
  const database = await server.createDatabase();
  const url = database.url.replace(/\/[^/?]+\?/, '/nothing?');
  await using hub = await prepareSiteHub({ url }, 'attic', { emulator, here: true });
  const message = await hub.launch().catch((error: Error) => error.message);
  expect(message).toMatch(/"nothing" does not exist/);
  expect(message).not.toContain(database.password);
});

test('a site has no snapshot and no key that one hub can replace, and says what to do instead', async () => {
  const database = await server.createDatabase();
  await using hub = await prepareSiteHub(database, 'attic', { emulator, here: true });
  await hub.launch();
  expect((await hub.cli('snapshot')).stderr).toMatch(/no snapshot.*latchkey backup FILE.*pg_dump/);
  expect((await hub.cli('store-key', '--rotate')).stderr).toMatch(/share their store key.*make a backup/);
});

test('an appliance that only one hub declares is accepted by all, until that hub no longer declares it', async () => {
  const database = await server.createDatabase();
  const appliance = '[appliances.wallbox]\nclient_id = "wallbox"\nsecret_file = "wallbox.secret"\n';
  const wallbox = { client_id: 'wallbox', client_secret: 'a secret of 32 or more characters' };
  rememberSecrets([wallbox.client_secret]);
  await using attic = await prepareSiteHub(database, 'attic', { emulator, toml: appliance, here: true });
  writeFileSync(join(attic.directory, 'wallbox.secret'), wallbox.client_secret, { mode: 0o600 });
  await attic.launch();
  await attic.pair('wallbox', emulator);
  await using cellar = await prepareSiteHub(database, 'cellar', { emulator, here: true });
  await copyStoreKey(attic, cellar);
  await cellar.launch();
  for (const hub of [attic, cellar]) expect((await hub.requestToken(wallbox)).status).toBe(200);
  expect(cellar.events('appliance_undeclared')).toEqual([]);

  const file = join(attic.directory, 'latchkey.toml');
  writeFileSync(file, readFileSync(file, 'utf8').replace(appliance, ''));
  await attic.reload();
  expect(attic.events('appliance_undeclared')).toMatchObject([{ appliance: 'wallbox' }]);
  for (const hub of [attic, cellar]) {
    await eventually(async () => (await hub.requestToken(wallbox)).status === 401);
  }
});

test('a hub that is stopped while the server of its database hangs ends', async () => {
  await using own = await startPostgres();
  await using hub = await prepareSiteHub(await own.createDatabase(), 'attic', { emulator });
  await hub.launch();
  await own.pause();
  // The server's system still answers, so no connection breaks by itself.
  await hub.kill('SIGTERM');
  expect(hub.events('hub_stopped')).toHaveLength(1);
  await own.resume();
});
