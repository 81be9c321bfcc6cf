import { expect, test } from 'vitest';
import { createLan, lanSkipReason } from '../support/netns.ts';
import { postgresProgram, postgresSkipReason } from '../support/postgres/cluster.ts';
import { psql } from '../support/postgres/psql.ts';
import { startPostgres } from '../support/postgres/server.ts';
import { addStandby } from '../support/postgres/standby.ts';
import { skipIfUnavailable } from '../support/set-up.ts';
import { waitFor } from '../support/wait-for.ts';

skipIfUnavailable(postgresSkipReason);

const COUNT = 'SELECT count(*) FROM grants;';
const INSERT = "INSERT INTO grants VALUES ('a');";
const WAITING_COMMITS = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep';";

test('a promoted synchronous standby has every commit of the killed primary', async () => {
  await using primary = await startPostgres();
  const database = await primary.createDatabase();
  await psql(database.url, 'CREATE TABLE grants (name text);');
  await using standby = await addStandby(primary, { synchronous: true });
  for (let commits = 1; commits <= 3; commits++) await psql(database.url, INSERT);
  await primary.kill();
  const url = standby.server.urlOf(database);
  await expect(psql(url, INSERT)).rejects.toThrow('read-only transaction');
  await standby.promote();
  expect(await psql(url, `${INSERT} ${COUNT}`)).toBe('4');
});

test('a promoted asynchronous standby lacks what was committed while its replication was paused', async () => {
  await using primary = await startPostgres({ tls: false });
  const database = await primary.createDatabase();
  await psql(database.url, 'CREATE TABLE grants (name text);');
  await using standby = await addStandby(primary);
  await psql(database.url, INSERT);
  await standby.catchUp(primary);
  await standby.pauseReplication();
  expect(await psql(database.url, `${INSERT} ${COUNT}`)).toBe('2');
  await primary.kill();
  await standby.promote();
  expect(await psql(standby.server.urlOf(database), COUNT)).toBe('1');

  // The former primary does not know about the new one.
  await primary.start();
  expect(await psql(database.url, `${INSERT} ${COUNT}`)).toBe('3');
});

test('commits wait for both synchronous standbys, and a paused one catches up', async () => {
  await using primary = await startPostgres({ tls: false });
  const database = await primary.createDatabase();
  await psql(database.url, 'CREATE TABLE grants (name text);');
  await using first = await addStandby(primary, { synchronous: true });
  await using second = await addStandby(primary, { synchronous: true });
  for (const standby of [first, second]) {
    await standby.pauseReplication();
    const commit = psql(database.url, INSERT);
    await waitFor(async () => expect(await primary.sql('postgres', WAITING_COMMITS)).toBe('1'));
    await standby.resumeReplication();
    await commit;
  }
  await primary.kill();
  await second.promote();
  expect(await psql(second.server.urlOf(database), COUNT)).toBe('2');
});

test('primary and standby run on hosts of their own in a network, with certificates for their addresses', async (ctx) => {
  const reason = await lanSkipReason();
  if (reason !== null) return ctx.skip(reason);
  await using lan = await createLan(['hub', 'primary', 'standby']);
  const { hub } = lan.hosts;
  await using primary = await startPostgres({ listenOn: lan.hosts.primary });
  const database = await primary.createDatabase();
  const query = (url: string, text: string) => hub.run(postgresProgram('psql'), ['-XAtqc', text, url]);
  await query(database.url, 'CREATE TABLE grants (name text);');
  await using standby = await addStandby(primary, { listenOn: lan.hosts.standby });
  await query(database.url, INSERT);
  await standby.catchUp(primary);
  await lan.hosts.primary.plug('down');
  await standby.promote();
  const url = standby.server.urlOf(database);
  expect(new URL(url).hostname).toBe(lan.hosts.standby.address);
  expect(await query(url, COUNT)).toBe('1\n');
});
