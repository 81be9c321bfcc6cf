// The doctor's checks of the database of a site, on real PostgreSQL servers.
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { checkDatabase } from '../../src/doctor/checks/database.ts';
import { checkStore } from '../../src/doctor/checks/state.ts';
import { createDoctorContext, type DoctorContext } from '../../src/doctor/context.ts';
import { jweSealing, STORE_KEY_BYTES } from '../../src/store/keys/sealing.ts';
import { parsePostgresUrl, readDatabaseAddress } from '../../src/store/postgres/database/postgres-url.ts';
import { openPostgresStore } from '../../src/store/postgres/open-postgres-store.ts';
import { systemClock, systemTimers } from '../../src/system/clock.ts';
import { postgresSkipReason } from '../support/postgres/cluster.ts';
import { type PostgresServer, startPostgres, type TestDatabase } from '../support/postgres/server.ts';
import { addStandby } from '../support/postgres/standby.ts';
import { setUpOnce } from '../support/set-up.ts';
import { stateFolder } from '../support/state-folder.ts';

let server: PostgresServer;
setUpOnce(
  async (parts) => {
    server = parts.use(await startPostgres());
  },
  { skipReason: postgresSkipReason },
);

let folder: ReturnType<typeof stateFolder>;
let database: TestDatabase;
beforeEach(async () => {
  folder = stateFolder();
  database = await server.createDatabase();
  return () => folder[Symbol.dispose]();
});

async function contextFor(url: string): Promise<DoctorContext> {
  const file = join(folder.path, 'latchkey.toml');
  writeFileSync(file, '[hub]\nstate_dir = "state"\n[store]\npostgres_file = "postgres.url"\n');
  writeFileSync(join(folder.path, 'postgres.url'), url, { mode: 0o600 });
  return createDoctorContext({ file, env: { PATH: process.env['PATH'], HOME: folder.path } });
}

/** The findings by their names, each as "result detail". */
async function findings(url = database.url, changes: Partial<DoctorContext> = {}): Promise<Record<string, string>> {
  const found = await checkDatabase({ ...(await contextFor(url)), ...changes });
  return Object.fromEntries([found].flat().map(({ name = '', result, detail }) => [name, `${result} ${detail}`]));
}

/** Lets a hub create its tables. */
async function createTables(): Promise<void> {
  const address = await readDatabaseAddress(parsePostgresUrl(database.url));
  const sealing = jweSealing(new Uint8Array(STORE_KEY_BYTES));
  const environment = { clock: systemClock('boot'), timers: systemTimers, random: { uuid: randomUUID } };
  await using store = await openPostgresStore({
    address,
    hubId: 'latchkey-0000000a',
    hubName: 'attic',
    sealing,
    ...environment,
  });
  await store.site.startupDone();
}

test('the doctor reports the server, TLS, rights, schema, clock and commits, and changes nothing', async () => {
  const common = {
    '': expect.stringMatching(/^ok database \S+ on localhost:\d+: PostgreSQL \d+\.\d+, TLSv1\.3$/),
    '.rights': 'ok the user of the URL has the rights that a hub needs',
    '.clock': 'ok the clock of the database agrees with this machine',
    '.commits': 'ok commits are on the disk of the server; there is no synchronous standby',
  };
  expect(await findings()).toEqual({ ...common, '.schema': 'ok there are no tables yet: the first hub creates them' });
  expect(await server.sql(database, "SELECT count(*) FROM pg_namespace WHERE nspname = 'latchkey'")).toMatch(/0/);
  await createTables();
  expect(await findings()).toEqual({ ...common, '.schema': 'ok the schema has version 1' });
  expect(await checkStore(await contextFor(database.url))).toMatchObject({
    detail: 'the store is the database of the site',
  });
});

test('the doctor reports tables of another owner, and a schema of another version', async () => {
  await createTables();
  await server.sql(database, 'UPDATE latchkey.schema SET version = 9');
  expect((await findings())['.schema']).toMatch(/^fail the schema has version 9, which this version does not know/);
  await server.sql(database, 'ALTER TABLE latchkey.settings OWNER TO postgres');
  expect((await findings())['.rights']).toMatch(
    /^fail the user of the URL may not use the tables.*the owner of the database/,
  );
});

test('the doctor compares the clocks of the database and of this machine', async () => {
  const shifted = (ms: number) => findings(database.url, { wall: () => systemClock('').now().wall + ms });
  expect((await shifted(60_000))['.clock']).toMatch(
    /^warn the clock of the database is (59|60) s behind this machine's/,
  );
});

test('the doctor warns of commits that a loss of power may take away', async () => {
  await server.sql('postgres', `ALTER DATABASE "${database.name}" SET synchronous_commit TO off`);
  expect((await findings())['.commits']).toBe(
    'warn commits may be lost if the server loses power (synchronous_commit or fsync is off), and then people may have to log in again: turn both on',
  );
});

test('the doctor says why the database can not be used, without the password', async () => {
  const away = database.url.replace(/localhost:\d+/, 'localhost:9');
  expect((await findings(away))['']).toMatch(
    /^fail .*can't be reached \(.*ECONNREFUSED.*\): check that the server runs/,
  );
  const wrong = (await findings(database.url.replace(`:${database.password}@`, ':wrong-password@')))[''];
  expect(wrong).toMatch(/^fail .*password authentication failed.*check user and password/);
  expect(wrong).not.toContain('wrong-password');
  expect((await findings(database.url.replace(/&sslrootcert=[^&]*/, '')))['']).toMatch(
    /^fail .*sslrootcert in the URL/,
  );
});

test('the doctor does not check a database whose URL is wrong', async () => {
  expect((await findings('mysql://nobody'))['']).toMatch(
    /^warn the database of the site could not be checked: fix the/,
  );
});

test('the doctor recognises a standby, and a server whose commits are on a standby too', async () => {
  await using standby = await addStandby(server, { synchronous: true });
  expect((await findings())['.commits']).toBe('ok commits are on the disk of the server and of a standby');
  const url = database.url.replace(/localhost:\d+/, `localhost:${standby.server.port}`);
  expect((await findings(url))['']).toMatch(/^fail .*it is a standby, which can't be written: promote it/);
});
