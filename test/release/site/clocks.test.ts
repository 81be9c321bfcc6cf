import { uptime } from 'node:os';
import { expect, test } from 'vitest';
import type { Clock } from '../../../src/core/clock.ts';
import { monotonicNow, systemClock } from '../../../src/system/clock.ts';
import { instantAt, sampleGrant } from '../../core/samples.ts';
import { HUB_A, HUB_B, openSiteStore, siteAddress, useSiteServer } from '../../site/site-harness.ts';
import { addAppliance, sampleSession, WALLBOX } from '../../store/test-store.ts';

const siteServer = useSiteServer();
const HOUR = 3_600_000;
const { id } = WALLBOX;
/** How exact ages are on a busy machine, in ms; the wrong ones are off by hours. */
const TOLERANCE = 5000;

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
  await addAppliance(a, { ...WALLBOX, waitingSince: obtained });
  await a.replaceGrant(sampleGrant({ obtained, refused: obtained }));
  await a.saveSession({ ...sampleSession(WALLBOX, 'one'), begun: obtained });
  const restarted = clockOf('boot-c', -HOUR / 60, 0);
  await using b = await openSiteStore(siteAddress(database), HUB_B, { clock: second });
  await using c = await openSiteStore(siteAddress(database), 'latchkey-0000000c', { clock: restarted });
  for (const [store, clock] of [
    [a, first],
    [b, second],
    [c, restarted],
  ] as const) {
    const stored = await store.grant(id);
    const instants = [
      ...[stored?.grant.obtained, stored?.grant.refused, (await store.appliances())[0]?.waitingSince],
      (await store.sessions())[0]?.begun,
    ];
    for (const instant of instants) {
      expect(instant?.boot).toBe(clock.now().boot);
      expect(Math.abs(clock.now().uptime - (instant?.uptime ?? 0) - 2 * HOUR)).toBeLessThan(TOLERANCE);
    }
  }
  // By the database's clock, which is right.
  const wall = (await b.grant(id))?.grant.obtained.wall ?? 0;
  expect(Math.abs(Date.now() - 2 * HOUR - wall)).toBeLessThan(TOLERANCE);
});

test('the lease of another hub ends at the same moment on every clock', async () => {
  const database = await (await siteServer()).createDatabase();
  const clock = clockOf('boot-b', 90 * HOUR, -30 * HOUR);
  await using a = await openSiteStore(siteAddress(database), HUB_A, { clock: clockOf('boot-a', 0, 7 * HOUR) });
  await using b = await openSiteStore(siteAddress(database), HUB_B, { clock });
  await addAppliance(a, WALLBOX);
  await a.replaceGrant(sampleGrant());
  await a.beginAttempt(sampleGrant(), { token: 'hash', at: instantAt(1) });
  const left = ((await b.grant(id))?.attempt?.leasedUntil ?? 0) - clock.now().uptime;
  expect(Math.abs(left - 180_000)).toBeLessThan(TOLERANCE);
});

test('a lease lasts as long as it was given for, whether the clock of the database is set forward or back', async () => {
  const server = await siteServer();
  const database = await server.createDatabase();
  const clock = clockOf('boot-b', 0, 0);
  await using a = await openSiteStore(siteAddress(database), HUB_A);
  await using b = await openSiteStore(siteAddress(database), HUB_B, { clock });
  await addAppliance(a, WALLBOX);
  await a.replaceGrant(sampleGrant());
  await a.beginAttempt(sampleGrant(), { token: 'hash', at: instantAt(1) });
  const left = async (store: typeof b) => ((await store.grant(id))?.attempt?.leasedUntil ?? 0) - clock.now().uptime;
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
  expect(await b.endAttempt(sampleGrant())).toBe(true);
});
