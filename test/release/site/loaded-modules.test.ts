// A hub on SQLite must pay nothing for sites: the modules that its process has loaded.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { HubProcess } from '../../support/hub-process.ts';
import { startPortal } from '../../support/portal.ts';
import { stateFolder } from '../../support/state-folder.ts';

const RECORDER = join(import.meta.dirname, 'module-recorder.js');

test('a hub on SQLite loads neither the driver of PostgreSQL nor the store of a site', async () => {
  using folder = stateFolder();
  const file = join(folder.path, 'modules');
  await using emulator = await startPortal();
  await using hub = await HubProcess.start({ emulator, flags: ['--import', RECORDER], env: { MODULE_RECORD: file } });
  expect((await hub.status()).hub.name).toBe('Test hub');
  const urls = readFileSync(file, 'utf8').split('\n');
  const loaded = (part: RegExp) => urls.some((url) => part.test(url));
  expect([/\/store\/sqlite\//, /\/node_modules\/better-sqlite3\//].map(loaded)).toEqual([true, true]);
  expect([/\/store\/postgres\//, /\/node_modules\/pg[^/]*\//].map(loaded)).toEqual([false, false]);
});
