import { describe, expect, it } from 'vitest';
import type { Configuration } from '../../src/configuration/configuration.ts';
import { Failure } from '../../src/core/failure.ts';
import { startWithSite } from '../../src/daemon/site-wait.ts';
import { parsePostgresUrl } from '../../src/store/postgres/database/postgres-url.ts';
import { FakeTime } from '../support/fake-time.ts';
import { logTo } from '../support/log-to.ts';

const SITE: Configuration['site'] = { url: parsePostgresUrl('postgresql://u@localhost/n'), file: 'postgres.url' };
const away = () => new Failure('database_unavailable', 'it can not be reached');

/** Starts a hub whose start fails with what `failures` yields, one after the other. */
function startHub(failures: Iterator<Error>, site = SITE) {
  const time = new FakeTime();
  const stop = new AbortController();
  const logged: string[] = [];
  const waiting: string[] = [];
  let starts = 0;
  const start = async () => {
    starts += 1;
    const { done, value } = failures.next();
    if (done === true) return 'a hub';
    throw value;
  };
  const hub = startWithSite(start, {
    configuration: { site },
    timers: time,
    now: () => time.now().uptime,
    ended: stop.signal,
    log: logTo((event) => logged.push(event)),
    onWaiting: (reason) => waiting.push(reason),
  });
  return { time, stop, logged, waiting, hub, starts: () => starts };
}

function* repeat(error: Error): Generator<Error, undefined> {
  for (;;) yield error;
}

describe('a hub whose database is away when it starts', () => {
  it('the start is tried every two seconds, and logged at once and then once a minute', async () => {
    const { time, stop, hub, logged, waiting, starts } = startHub(repeat(away()));
    await time.pass(0);
    expect([logged, waiting]).toEqual([['waiting_for_database'], ['it can not be reached']]);
    await time.pass(59_000);
    expect(logged).toHaveLength(1);
    expect(starts()).toBe(30);
    await time.pass(2000);
    expect(logged).toHaveLength(2);
    stop.abort();
    await time.pass(2000);
    expect(await hub).toBeNull();
  });

  it.each(['database_unavailable', 'store_unreadable', 'store_unwritable'] as const)(
    'the hub starts after a failure with the code %s',
    async (code) => {
      const { time, hub } = startHub([new Failure(code, 'not yet')].values());
      await time.pass(2000);
      expect(await hub).toBe('a hub');
    },
  );

  it('what a person must correct ends the start', async () => {
    const { hub } = startHub([new Failure('database_unusable', 'a wrong password')].values());
    await expect(hub).rejects.toThrow('a wrong password');
  });

  it('a hub on SQLite does not wait for its store', async () => {
    const { hub } = startHub([new Failure('store_unreadable', 'it is damaged')].values(), null);
    await expect(hub).rejects.toThrow('it is damaged');
  });
});
