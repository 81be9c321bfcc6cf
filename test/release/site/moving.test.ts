// What docs/state.md says about moving a hub to a site and back, with hubs as processes and a real PostgreSQL server.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { expect, test } from 'vitest';
import type { Emulator } from '../../../src/emulator/index.ts';
import { copyStoreKey, fullStatus, prepareSiteHub } from '../../site/site-hubs.ts';
import { eventually, HubProcess, type HubProcessOptions } from '../../support/hub-process.ts';
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

const PASSPHRASE = 'correct horse battery staple';
/** A hub in this process. */
const HERE = { here: true };

/** Makes a backup with the command line. */
async function backUp(hub: HubProcess): Promise<string> {
  const [file, passphrase] = ['hub.copy', 'passphrase'].map((name) => join(hub.directory, name));
  writeFileSync(passphrase ?? '', PASSPHRASE, { mode: 0o600 });
  const { status, stderr } = await hub.cli('backup', file ?? '', '--force', '--passphrase-file', passphrase ?? '');
  expect([status, stderr]).toEqual([0, '']);
  return file ?? '';
}

/** Restores a backup with the command line. */
async function restore(hub: HubProcess, file: string): Promise<string> {
  const passphrase = join(hub.directory, 'passphrase');
  writeFileSync(passphrase, PASSPHRASE, { mode: 0o600 });
  const { status, stdout, stderr } = await hub.cli('restore', file, '--yes', '--passphrase-file', passphrase);
  expect([status, stderr.replace(/^Waiting for the hub, .*\n/, '')]).toEqual([0, '']);
  return stdout;
}

/** Starts two hubs of a new site. */
/** @param options of its hubs */
async function startSite(options: HubProcessOptions = HERE) {
  await using parts = new AsyncDisposableStack();
  const database = await server.createDatabase();
  const attic = parts.use(await prepareSiteHub(database, 'attic', { emulator, ...options }));
  await attic.launch();
  const cellar = parts.use(await prepareSiteHub(database, 'cellar', { emulator, ...options }));
  await copyStoreKey(attic, cellar);
  await cellar.launch();
  const moved = parts.move();
  return { database, attic, cellar, [Symbol.asyncDispose]: () => moved.disposeAsync() };
}

/** The ids in the state directories of hubs, sorted. */
function idsOf(...hubs: HubProcess[]): string[] {
  return hubs.map((hub) => readFileSync(join(hub.directory, 'state/hub-id'), 'utf8').trim()).sort();
}

/** Waits until a hub lists these hubs of its site, and no others. */
function listsHubs(hub: HubProcess, ids: readonly string[]): Promise<unknown> {
  return eventually(async () => {
    const { site } = await fullStatus(hub);
    return isDeepStrictEqual(site?.hubs.map(({ id }) => id).sort(), ids);
  });
}

/** Waits until a hub has the CA with this pin. */
function hasPin(hub: HubProcess, pin: string): Promise<unknown> {
  return eventually(async () => (await hub.authority().catch(() => null))?.fingerprint === pin);
}

test('a hub moves to a running site: all its hubs start again, and issue tokens to its appliances', async () => {
  await using single = await HubProcess.start({ emulator, ...HERE });
  const wallbox = await single.addAppliance('wallbox');
  await single.pair('wallbox', emulator);
  const { id } = (await single.status()).hub;
  const pin = (await single.authority()).fingerprint;
  const file = await backUp(single);
  await single.kill('SIGTERM');

  // As processes, which go on when their hubs start again.
  await using site = await startSite({});
  const { attic, cellar } = site;
  const { site: before } = await fullStatus(attic);
  const pids = [attic, cellar].map((hub) => hub.pid);
  expect(await restore(attic, file)).toMatch(
    new RegExp(`^The hub runs again as ${id}, with its state of .*Grants from the backup .*: wallbox`, 's'),
  );
  for (const hub of [attic, cellar]) {
    await hasPin(hub, pin);
    const credentials = { ...wallbox, token_endpoint: `https://127.0.0.1:${hub.httpsPort}/oauth/token` };
    await eventually(async () => (await hub.requestToken(credentials)).status === 200);
  }
  expect([attic, cellar].map((hub) => hub.pid)).toEqual(pids);
  expect([attic, cellar].map((hub) => hub.events('site_restored').length)).toEqual([0, 1]);
  expect((await fullStatus(cellar)).site?.id).toBe(before?.id);
  expect(idsOf(attic)).toEqual([id]);
  await listsHubs(cellar, idsOf(attic, cellar));
  expect((await cellar.setupCode()).code).toBe((await attic.setupCode()).code);
});

test('the hubs of a site get a new store key with a backup and an empty database', async () => {
  await using site = await startSite();
  const { attic, cellar } = site;
  const wallbox = await attic.addAppliance('wallbox');
  await attic.pair('wallbox', emulator);
  const pin = (await attic.authority()).fingerprint;
  const before = idsOf(attic, cellar);
  const file = await backUp(attic);
  for (const hub of [attic, cellar]) await hub.kill('SIGTERM');

  const { url } = await server.createDatabase();
  for (const hub of [attic, cellar]) {
    rmSync(join(hub.directory, 'state/store.key'));
    writeFileSync(join(hub.directory, 'postgres.url'), url, { mode: 0o600 });
  }
  await attic.launch();
  await restore(attic, file);
  await hasPin(attic, pin);
  await copyStoreKey(attic, cellar);
  await cellar.launch();
  expect((await cellar.authority()).fingerprint).toBe(pin);
  expect(idsOf(attic, cellar)).toEqual(before);
  await listsHubs(attic, before);
  const credentials = { ...wallbox, token_endpoint: `https://127.0.0.1:${cellar.httpsPort}/oauth/token` };
  await eventually(async () => (await cellar.requestToken(credentials)).status === 200);
});

test('a hub moves to a site on its own machine, and back with an empty state directory', async () => {
  const { url } = await server.createDatabase();
  await using hub = await HubProcess.start({ emulator, ...HERE });
  const wallbox = await hub.addAppliance('wallbox');
  await hub.pair('wallbox', emulator);
  const { id } = (await hub.status()).hub;
  const pin = (await hub.authority()).fingerprint;
  const file = await backUp(hub);
  await hub.kill('SIGTERM');
  const configuration = join(hub.directory, 'latchkey.toml');
  const alone = readFileSync(configuration, 'utf8');
  writeFileSync(configuration, `${alone}\n[store]\npostgres_file = "postgres.url"\n`);
  writeFileSync(join(hub.directory, 'postgres.url'), url, { mode: 0o600 });
  await hub.launch();
  await restore(hub, file);
  await hasPin(hub, pin);
  await listsHubs(hub, [id]);
  await eventually(async () => (await hub.requestToken(wallbox)).status === 200);

  const siteFile = await backUp(hub);
  await hub.kill('SIGTERM');
  writeFileSync(configuration, alone);
  const state = join(hub.directory, 'state');
  for (const name of readdirSync(state)) rmSync(join(state, name), { recursive: true });
  await hub.launch();
  await restore(hub, siteFile);
  await hasPin(hub, pin);
  expect((await hub.status()).hub.id).toBe(id);
  await eventually(async () => (await hub.requestToken(wallbox)).status === 200);
});
