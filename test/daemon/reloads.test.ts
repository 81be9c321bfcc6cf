import { expect, it } from 'vitest';
import type { Configuration } from '../../src/configuration/configuration.ts';
import { ReloadCoordinator } from '../../src/daemon/reloads.ts';
import { parsePostgresUrl } from '../../src/store/postgres/database/postgres-url.ts';

/** A configuration with the database of a site; null for a hub on SQLite. */
function configuration(url: string | null): Configuration {
  const site = url === null ? null : { url: parsePostgresUrl(url), file: 'postgres.url' };
  return {
    file: 'latchkey.toml',
    stateDirectory: '/state',
    controlSocket: '/socket',
    site,
  } as unknown as Configuration;
}

const URL = 'postgresql://hub:one@localhost/home';

it.each([
  ['another database', URL, 'postgresql://hub:one@localhost/other'],
  ['another server', URL, 'postgresql://hub:one@localhost:5433/home'],
  ['a database instead of SQLite', null, URL],
  ['SQLite instead of a database', URL, null],
])('a reload with %s is rejected', async (_, running, wanted) => {
  const reloads = new ReloadCoordinator(
    configuration(running),
    async () => configuration(wanted),
    () => 'id',
  );
  await expect(reloads.prepare()).rejects.toThrow("store.postgres_file can't change while the hub runs: restart it");
});

it('a reload with another user or password of the same database is accepted', async () => {
  const wanted = configuration('postgresql://other:two@localhost/home');
  const reloads = new ReloadCoordinator(
    configuration(URL),
    async () => wanted,
    () => 'id',
  );
  expect((await reloads.prepare()).id).toBe('id');
});
