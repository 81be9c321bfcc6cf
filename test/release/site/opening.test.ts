import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { Failure } from '../../../src/core/failure.ts';
import type { DatabaseAddress } from '../../../src/store/postgres/database/connections.ts';
import { assertUsable } from '../../../src/store/postgres/database/site-connection.ts';
import { SITE_SCHEMA_VERSION } from '../../../src/store/postgres/schema.ts';
import { createAuthority } from '../../../src/system/x509/issuing.ts';
import {
  fastClock,
  HUB_A,
  HUB_B,
  openSiteStore,
  type SiteHubOptions,
  siteAddress,
  startSiteStore,
  useSiteServer,
} from '../../site/site-harness.ts';
import { startPostgres, type TestDatabase } from '../../support/postgres/server.ts';

const siteServer = useSiteServer();

/** Why a hub can't open the store of its site; the password is nowhere in it. */
async function failureOf(address: DatabaseAddress, options: SiteHubOptions = {}): Promise<Failure> {
  const failure = await openSiteStore(address, HUB_A, options).then(
    async (store) => {
      await store[Symbol.asyncDispose]();
      throw new Error('the store was opened');
    },
    (error: unknown) => error,
  );
  if (!(failure instanceof Failure)) throw failure;
  expect(inspect(failure, { depth: 20, showHidden: true })).not.toContain(address.password);
  return failure;
}

describe('start of a site', () => {
  test('hubs that start at once on an empty database create its tables once, one after the other', async () => {
    const server = await siteServer();
    const database = await server.createDatabase();
    const starts = [HUB_A, HUB_B, 'latchkey-0000000c'].map((id) => startSiteStore(siteAddress(database), id));
    let open = 0;
    for (const start of starts) void start.then(() => (open += 1));
    const left = [...starts];
    const siteIds = new Set<string>();
    while (left.length > 0) {
      const { store, start } = await Promise.race(left.map(async (start) => ({ store: await start, start })));
      left.splice(left.indexOf(start), 1);
      for (let look = 0; look < 5; look += 1) await store.catchUp();
      expect(open).toBe(starts.length - left.length);
      siteIds.add(store.site.siteId);
      await store.site.startupDone();
    }
    for (const start of starts) await (await start)[Symbol.asyncDispose]();
    expect(siteIds.size).toBe(1);
    const version = 'SELECT version FROM latchkey.schema;';
    expect(await server.sql(database, version)).toBe(String(SITE_SCHEMA_VERSION));
  });

  test('a site of another schema version is refused, and stays as it is', async () => {
    const server = await siteServer();
    const database = await server.createDatabase();
    const address = siteAddress(database);
    {
      await using store = await openSiteStore(address, HUB_A);
      await store.settings.save({ setup_code: 'a code' });
    }
    const set = (version: number) => server.sql(database, `UPDATE latchkey.schema SET version = ${version};`);
    await set(SITE_SCHEMA_VERSION + 1);
    expect(await failureOf(address)).toMatchObject({
      code: 'store_schema_unknown',
      message: expect.stringContaining(`has schema ${SITE_SCHEMA_VERSION + 1}, and this Latchkey knows only schema`),
    });
    expect(await server.sql(database, 'SELECT version FROM latchkey.schema;')).toBe(String(SITE_SCHEMA_VERSION + 1));
    await set(SITE_SCHEMA_VERSION);
    await using store = await openSiteStore(address, HUB_A);
    expect(await store.settings.get('setup_code')).toBe('a code');
  });

  test('a schema of another program is refused, and stays as it is', async () => {
    const server = await siteServer();
    const database = await server.createDatabase();
    await server.sql(
      database,
      `CREATE SCHEMA latchkey AUTHORIZATION ${database.user}; CREATE TABLE latchkey.stock (id int);`,
    );
    await server.sql(database, `GRANT ALL ON ALL TABLES IN SCHEMA latchkey TO ${database.user};`);
    expect(await failureOf(siteAddress(database))).toMatchObject({
      code: 'database_unusable',
      message: expect.stringContaining('belongs to another program'),
    });
    expect(await server.sql(database, "SELECT count(*) FROM pg_tables WHERE schemaname = 'latchkey';")).toBe('1');
  });
});

describe('a database that can not be used', () => {
  test.each<[string, (database: TestDatabase) => Partial<DatabaseAddress>, string, string]>([
    ['another password', () => ({ password: 'another-password' }), 'database_unusable', 'check user and password'],
    ['an unknown database', () => ({ database: 'nothing' }), 'database_unusable', 'create the database'],
    ['TLS that the server does not have', () => ({ tls: { ca: undefined } }), 'database_unusable', 'switch TLS on'],
    ['an unknown host', () => ({ host: 'database.invalid' }), 'database_unavailable', "can't be reached"],
  ])('a hub with %s says what is wrong, without the password', async (_, change, code, says) => {
    const database = await (await siteServer()).createDatabase();
    const failure = await failureOf({ ...siteAddress(database), ...change(database) });
    expect(failure).toMatchObject({ code, message: expect.stringContaining(says) });
  });

  test('a role that may not create the schema is refused', async () => {
    const server = await siteServer();
    const database = await server.createDatabase();
    await server.sql(database, `ALTER DATABASE ${database.name} OWNER TO postgres;`);
    expect(await failureOf(siteAddress(database))).toMatchObject({
      code: 'database_unusable',
      message: expect.stringMatching(/permission denied.*make the user of the URL the owner/s),
    });
  });

  test('a server without a free connection is away, until it has one', async () => {
    const server = await siteServer();
    const database = await server.createDatabase();
    await server.sql(database, `ALTER ROLE ${database.user} CONNECTION LIMIT 1;`);
    expect(await failureOf(siteAddress(database))).toMatchObject({
      code: 'database_unavailable',
      message: expect.stringContaining('too many connections'),
    });
    await server.sql(database, `ALTER ROLE ${database.user} CONNECTION LIMIT -1;`);
    await using store = await openSiteStore(siteAddress(database), HUB_A);
    expect(store.writeProblem).toBeNull();
  });

  test("only the server's own certificate of the given CA is accepted", async () => {
    // Its certificate has no other addresses than these: localhost and 127.0.0.1.
    await using server = await startPostgres({ settings: { listen_addresses: '127.0.0.1,127.0.0.2' } });
    const address = siteAddress(await server.createDatabase());
    const ca = server.authority?.certificate;
    const others = (await createAuthority('Another')).certificate;
    const refused = { code: 'database_unusable', message: expect.stringContaining('sslrootcert') };
    expect(await failureOf({ ...address, tls: { ca: undefined } })).toMatchObject(refused);
    expect(await failureOf({ ...address, tls: { ca: others } })).toMatchObject(refused);
    expect(await failureOf({ ...address, host: '127.0.0.2', tls: { ca } })).toMatchObject(refused);
    expect(await failureOf({ ...address, host: '127.1', tls: { ca } })).toMatchObject(refused);
    expect(await failureOf(address)).toMatchObject({
      code: 'database_unusable',
      message: expect.stringContaining('hba'),
    });
    for (const host of ['localhost', '127.0.0.1']) {
      await using store = await openSiteStore({ ...address, host, tls: { ca } }, HUB_A);
      expect(store.writeProblem).toBeNull();
    }
  });

  test.each([
    ['is too old', { version: '12.17', number: 120_017 }, 'database_unusable', '13 or newer'],
    ['is a standby', { standby: true }, 'database_unavailable', 'standby'],
    // A pooler that keeps the settings of a session to itself.
    ['does not have the settings of the session', { search_path: '"$user", public' }, 'database_unusable', 'PgBouncer'],
  ])('a server that %s is refused', (_, change, code, says) => {
    const usable = { version: '13.0', number: 130_000, standby: false, search_path: 'latchkey' };
    expect(() => assertUsable(usable)).not.toThrow();
    const expected = expect.objectContaining({ code, message: expect.stringContaining(says) });
    expect(() => assertUsable({ ...usable, ...change })).toThrow(expected);
  });
});

test('a hub that can no longer look for news says so, and goes on when it can', async () => {
  const server = await siteServer();
  const database = await server.createDatabase();
  await using store = await openSiteStore(siteAddress(database), HUB_A);
  await server.sql(database, `REVOKE SELECT ON latchkey.changes FROM ${database.user};`);
  await expect.poll(() => store.writeProblem).toContain('permission denied');
  await server.sql(database, `GRANT SELECT ON latchkey.changes TO ${database.user};`);
  await expect.poll(() => store.writeProblem).toBeNull();
});

test('a hub that waits for the start of another one says so after a while, and tries again later', async () => {
  const database = await (await siteServer()).createDatabase();
  await using starting = await startSiteStore(siteAddress(database), HUB_B);
  expect(await failureOf(siteAddress(database), { clock: fastClock(20) })).toMatchObject({
    code: 'database_unavailable',
    message: `another hub of the site is starting (${HUB_B}); if it hangs, restart it`,
  });
  await starting.site.startupDone();
  await using store = await openSiteStore(siteAddress(database), HUB_A);
  expect(store.site.hubId).toBe(HUB_A);
});

describe('id of a hub', () => {
  /** A hub that waits for its id for a short time. */
  const quick = () => ({ clock: fastClock(100) });

  test('a second hub with the same id does not start', async () => {
    const database = await (await siteServer()).createDatabase();
    await using store = await openSiteStore(siteAddress(database), HUB_A);
    expect(await failureOf(siteAddress(database), quick())).toMatchObject({
      code: 'store_locked',
      message: expect.stringContaining('delete the file hub-id'),
    });
    await store.settings.save({ setup_code: 'a code' });
  });

  test('a hub that starts again waits until its former connection is gone', async () => {
    const database = await (await siteServer()).createDatabase();
    const former = await openSiteStore(siteAddress(database), HUB_A);
    const next = openSiteStore(siteAddress(database), HUB_A);
    let isOpen = false;
    void next.then(() => (isOpen = true));
    for (let look = 0; look < 5; look += 1) await former.catchUp();
    expect(isOpen).toBe(false);
    await former[Symbol.asyncDispose]();
    await using store = await next;
    expect(store.site.hubId).toBe(HUB_A);
  });
});
