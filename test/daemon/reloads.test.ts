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

it('a change of the store is made only if its reload can follow, and the next hub has the same configuration', async () => {
  const running = configuration(null);
  const reloads = new ReloadCoordinator(
    running,
    async () => configuration(null),
    () => 'id',
  );
  const changes: string[] = [];
  const change = (name: string) => reloads.prepareAfter(async () => void changes.push(name));
  await expect(
    reloads.prepareAfter(async () => {
      throw new Error('the disk is full');
    }),
  ).rejects.toThrow('the disk is full');
  const [first, second] = await Promise.allSettled([change('first'), change('second')]);
  expect([first.status, second.status, changes]).toEqual(['fulfilled', 'rejected', ['first']]);
  await expect(change('third')).rejects.toThrow('already applying');
  if (first.status === 'fulfilled') first.value.start();
  const reload = await reloads.requested;
  expect(reload.configuration).toBe(running);
  reloads.settle(reload, null);
  await change('fourth');
  expect(changes).toEqual(['first', 'fourth']);
});
