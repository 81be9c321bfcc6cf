// A hub on SQLite must pay nothing for sites: the modules that its process has loaded.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Emulator } from '../../../src/emulator/index.ts';
import { prepareSiteHub } from '../../site/site-hubs.ts';
import { HubProcess } from '../../support/hub-process.ts';
import { startPortal } from '../../support/portal.ts';
import { postgresSkipReason } from '../../support/postgres/cluster.ts';
import { startPostgres } from '../../support/postgres/server.ts';
import { setUpOnce, skipIfUnavailable } from '../../support/set-up.ts';

skipIfUnavailable(postgresSkipReason);

let emulator: Emulator;
setUpOnce(async (parts) => {
  emulator = parts.use(await startPortal());
});

const RECORDER = join(import.meta.dirname, 'module-recorder.js');

/** Options for a hub that records the URLs of the modules that it loads, and the file with them. */
function recording(file: string) {
  return { emulator, flags: ['--import', RECORDER], env: { MODULE_RECORD: file } };
}

/** The modules of the PostgreSQL store, and of the driver, that a process has loaded. */
function postgresModules(file: string): { store: string[]; driver: string[] } {
  const urls = readFileSync(file, 'utf8').split('\n');
  expect(urls.some((url) => url.endsWith('/dist/hub/hub.js'))).toBe(true);
  return {
    store: urls.filter((url) => url.includes('/store/postgres/')),
    driver: urls.filter((url) => /\/node_modules\/pg[^/]*\//.test(url)),
  };
}

test('a hub on SQLite loads neither the driver of PostgreSQL nor the store of a site', async () => {
  await using hub = await HubProcess.prepare();
  const file = join(hub.directory, 'modules');
  await using recorded = await HubProcess.start(recording(file));
  expect((await recorded.status()).hub.name).toBe('Test hub');
  expect(existsSync(file)).toBe(true);
  expect(postgresModules(file)).toEqual({ store: [], driver: [] });
});

test('a hub of a site loads both', async () => {
  await using server = await startPostgres();
  await using other = await HubProcess.prepare();
  const file = join(other.directory, 'modules');
  await using hub = await prepareSiteHub(await server.createDatabase(), 'attic', recording(file));
  await hub.launch();
  const { store, driver } = postgresModules(file);
  expect(store).toContainEqual(expect.stringContaining('postgres-store.js'));
  expect(driver).toContainEqual(expect.stringContaining('/pg/'));
});
