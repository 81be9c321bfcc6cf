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

/** Prepares a reload of a hub that runs with one database and is to use another one. */
const prepare = (running: string | null, wanted: string | null) =>
  new ReloadCoordinator(
    configuration(running),
    async () => configuration(wanted),
    () => 'id',
  ).prepare();

it.each([
  ['another database', URL, 'postgresql://hub:one@localhost/other'],
  ['a database instead of SQLite', null, URL],
])('a reload with %s is rejected', async (_, running, wanted) => {
  await expect(prepare(running, wanted)).rejects.toThrow(
    "store.postgres_file can't change while the hub runs: restart it",
  );
});

it('a reload with another user or password of the same database is accepted', async () => {
  expect((await prepare(URL, 'postgresql://other:two@localhost/home')).id).toBe('id');
});
