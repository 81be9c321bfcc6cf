import { uptime } from 'node:os';
import { expect, test } from 'vitest';
import type { Clock } from '../../../src/core/clock.ts';
import { monotonicNow, systemClock } from '../../../src/system/clock.ts';
import { instantAt, sampleGrant, samplePairing } from '../../core/samples.ts';
import { HUB_A, HUB_B, NO_INTERVALS, openSiteStore, siteAddress, useSiteServer } from '../../site/site-harness.ts';
import { addAppliance, sampleSession, WALLBOX } from '../../store/test-store.ts';

const siteServer = useSiteServer();
const HOUR = 3_600_000;
const { id } = WALLBOX;
const from = '192.168.1.20';
/** How exact ages are on a busy machine, in ms; the wrong ones are off by hours. */
const TOLERANCE = 5000;
/** A test waits so long for what usually takes a few seconds. */
const POLLING = { timeout: 20_000, interval: 20 };

/** A clock of a boot that began `age` ms earlier than this machine's, with a wall clock that is wrong by `error` ms. */
function clockOf(boot: string, age: number, error: number): Clock {
  return systemClock(boot, {
    uptime: () => uptime() * 1000 + age,
    wall: () => Date.now() + error,
    monotonic: monotonicNow,
  });
}

test('a hub knows the age of what another hub has stored, and of what it has stored before a restart', async () => {
  const database = await (await siteServer()).createDatabase();
  const first = clockOf('boot-a', 5 * HOUR, 7 * HOUR);
  const second = clockOf('boot-b', 90 * HOUR, -30 * HOUR);
  await using a = await openSiteStore(siteAddress(database), HUB_A, { clock: first });
  const now = first.now();
  const obtained = { ...now, uptime: now.uptime - 2 * HOUR };
  await addAppliance(a, { ...WALLBOX, waiting: { since: obtained, from } });
  await a.grants.replace(sampleGrant({ obtained, refused: obtained }));
  await a.sessions.save({ ...sampleSession(WALLBOX, 'one'), begun: obtained });
  const restarted = clockOf('boot-c', -HOUR / 60, 0);
  await using b = await openSiteStore(siteAddress(database), HUB_B, { clock: second });
  await using c = await openSiteStore(siteAddress(database), 'latchkey-0000000c', { clock: restarted });
  for (const [store, clock] of [
    [a, first],
    [b, second],
    [c, restarted],
  ] as const) {
    const stored = await store.grants.get(id);
    const instants = [
      ...[stored?.grant.obtained, stored?.grant.refused, (await store.registry.appliances())[0]?.waiting?.since],
      (await store.sessions.all())[0]?.begun,
    ];
    for (const instant of instants) {
      expect(instant?.boot).toBe(clock.now().boot);
      expect(Math.abs(clock.now().uptime - (instant?.uptime ?? 0) - 2 * HOUR)).toBeLessThan(TOLERANCE);
    }
  }
  // By the database's clock, which is right.
  const wall = (await b.grants.get(id))?.grant.obtained.wall ?? 0;
  expect(Math.abs(Date.now() - 2 * HOUR - wall)).toBeLessThan(TOLERANCE);
});

test('a hub knows the age of what a hub has stored that started after its last heartbeat', async () => {
  const database = await (await siteServer()).createDatabase();
  const clock = clockOf('boot-a', 5 * HOUR, 0);
  await using a = await openSiteStore(siteAddress(database), HUB_A, { clock, timers: NO_INTERVALS });
  const later = clockOf('boot-b', 0, 9 * HOUR);
  await using b = await openSiteStore(siteAddress(database), HUB_B, { clock: later });
  await addAppliance(b, { ...WALLBOX, waiting: { since: later.now(), from } });
  const [appliance] = await a.registry.appliances();
  expect(appliance?.waiting?.since.boot).toBe('boot-a');
  expect(Math.abs(clock.now().uptime - (appliance?.waiting?.since.uptime ?? 0))).toBeLessThan(TOLERANCE);
});

test('the lease of another hub ends at the same moment on every clock', async () => {
  const database = await (await siteServer()).createDatabase();
  const clock = clockOf('boot-b', 90 * HOUR, -30 * HOUR);
  await using a = await openSiteStore(siteAddress(database), HUB_A, { clock: clockOf('boot-a', 0, 7 * HOUR) });
  await using b = await openSiteStore(siteAddress(database), HUB_B, { clock });
  await addAppliance(a, WALLBOX);
  await a.grants.replace(sampleGrant());
  await a.grants.beginAttempt(sampleGrant(), { token: 'hash', at: instantAt(1) });
  const left = ((await b.grants.get(id))?.attempt?.leasedUntil ?? 0) - clock.now().uptime;
  expect(Math.abs(left - 180_000)).toBeLessThan(TOLERANCE);
});

test('an instant of a boot that no hub has measured stays as it is', async () => {
  const database = await (await siteServer()).createDatabase();
  await using a = await openSiteStore(siteAddress(database), HUB_A);
  await addAppliance(a, { ...WALLBOX, waiting: { since: instantAt(7, 'of-a-backup'), from } });
  expect((await a.registry.appliances())[0]?.waiting?.since).toEqual(instantAt(7, 'of-a-backup'));
});

test('a lease lasts as long as it was given for, whether the clock of the database is set forward or back', async () => {
  const server = await siteServer();
  const database = await server.createDatabase();
  const clock = clockOf('boot-b', 0, 0);
  await using a = await openSiteStore(siteAddress(database), HUB_A);
  await using b = await openSiteStore(siteAddress(database), HUB_B, { clock });
  await addAppliance(a, WALLBOX);
  await a.grants.replace(sampleGrant());
  await a.grants.beginAttempt(sampleGrant(), { token: 'hash', at: instantAt(1) });
  const left = async (store: typeof b) =>
    ((await store.grants.get(id))?.attempt?.leasedUntil ?? 0) - clock.now().uptime;
  const before = await left(b);
  // All times in the database are then earlier or later than they were.
  await server.sql(database, "UPDATE latchkey.grants SET leased_until = leased_until - interval '1 hour'");
  expect(Math.abs((await left(b)) - before)).toBeLessThan(TOLERANCE);
  for (const end of ["leased_until + interval '9 hours'", "'infinity'"]) {
    await server.sql(database, `UPDATE latchkey.grants SET leased_until = ${end}`);
    expect(Math.abs((await left(b)) - before)).toBeLessThan(TOLERANCE);
    await using late = await openSiteStore(siteAddress(database), 'latchkey-0000000c', { clock });
    expect(Math.abs((await left(late)) - 180_000)).toBeLessThan(TOLERANCE);
  }
  expect(await b.grants.endAttempt(sampleGrant())).toBe(true);
});

test('a dead hub does not seem alive, nor keep its work, if the clock of the database is set back', async () => {
  const server = await siteServer();
  const database = await server.createDatabase();
  const a = await openSiteStore(siteAddress(database), HUB_A);
  await addAppliance(a, WALLBOX);
  await a.pairings.save(samplePairing({ kind: 'asking' }));
  expect(await a.holdLease('notices')).toBe(true);
  await a[Symbol.asyncDispose]();
  await server.sql(
    database,
    `UPDATE latchkey.hubs SET last_seen = last_seen + interval '9 hours';
     UPDATE latchkey.leases SET until = until + interval '9 hours';
     UPDATE latchkey.pairings SET owned_until = owned_until + interval '9 hours';`,
  );
  await using b = await openSiteStore(siteAddress(database), HUB_B);
  expect(b.site.hubs.map(({ id: hub, isAlive }) => [hub, isAlive])).toEqual([
    [HUB_A, false],
    [HUB_B, true],
  ]);
  expect(await b.holdLease('notices')).toBe(true);
  expect(await b.pairings.take(samplePairing({ kind: 'asking' }).id, false)).not.toBeNull();
});

test('a hub reads everything again after the clock of the database was set forward, as it may be after a power cut', async () => {
  const database = await (await siteServer()).createDatabase();
  // To this hub the database's clock is two hours behind at first: its own boot seems to have begun so much earlier.
  let ahead = 2 * HOUR;
  const clock = { now: () => ({ boot: 'boot-a', uptime: Math.round(uptime() * 1000 + ahead), wall: Date.now() }) };
  await using store = await openSiteStore(siteAddress(database), HUB_A, { clock });
  const everything: boolean[] = [];
  store.watch({ news: async ({ all }) => void everything.push(all) });
  /** Waits for a heartbeat, which measures the clock. */
  const measure = async (name: string) => {
    store.site.announce({ name, address: null, version: '1' });
    await expect.poll(() => store.site.hubs.some((hub) => hub.name === name), POLLING).toBe(true);
  };
  await measure('before');
  ahead = 0;
  await measure('after');
  expect(everything).not.toContain(true);
  // By then all hubs have measured it.
  ahead = 15_000;
  await expect.poll(() => everything, POLLING).toContain(true);
});
