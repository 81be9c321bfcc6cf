import { describe, expect, test } from 'vitest';
import { createHubRanking, RefreshSchedule, type ScheduledGrant } from '../../src/broker/grants/refresh-schedule.ts';
import { ReferenceClock } from '../../src/broker/time/reference-clock.ts';
import type { ConfiguredPortal } from '../../src/core/portals/identity.ts';
import { systemRandom } from '../../src/system/random.ts';
import { HOUR, instantAt, MINUTE, SECOND, sampleGrant } from '../core/samples.ts';
import { logTo } from '../support/log-to.ts';

const grant = sampleGrant({ obtained: instantAt(0), lifetime: 3 * HOUR });
const held: ScheduledGrant = {
  grant,
  health: { kind: 'good' },
  lastForcedRefresh: null,
  throttledUntil: Number.NEGATIVE_INFINITY,
  leasedUntil: null,
};

/** What a portal says about its refreshes. */
interface PortalTimes {
  readonly retryLostAnswer: 'early' | 'late';
  readonly loginLifetime: number | null;
  readonly idleLifetime: number | null;
  readonly refreshEndsAccessToken: boolean;
  readonly identity: ConfiguredPortal;
}

const ending: PortalTimes = {
  identity: { ...sampleGrant().issuer, otherOrigins: [] },
  retryLostAnswer: 'late',
  loginLifetime: null,
  idleLifetime: null,
  refreshEndsAccessToken: true,
};

/** The schedule of a hub that has run from 0 to `uptime`; by default for a portal where a refresh ends the access token. */
function scheduleAt(uptime: number, rank: number, portal: PortalTimes | undefined = ending): RefreshSchedule {
  let now = 0;
  const environment = {
    clock: { now: () => instantAt(now) },
    random: systemRandom,
    log: logTo(() => undefined),
  };
  const schedule = new RefreshSchedule(
    environment,
    new ReferenceClock(environment),
    () => portal,
    () => 0.5,
    () => rank,
  );
  now = uptime;
  return schedule;
}

test.each([1 * MINUTE, 2 * HOUR, 3 * HOUR - 61 * SECOND, 3 * HOUR - 59 * SECOND, 3 * HOUR - 1 * SECOND])(
  'every hub of a site says that a token ends when the first one refreshes it, if that ends it: %i ms after it was issued',
  (age) => {
    const usable = [0, 1, 2].map((rank) => scheduleAt(age, rank).usable(held));
    expect(new Set(usable)).toEqual(new Set([Math.max(0, 3 * HOUR - MINUTE - age)]));
    // While one of them refreshes it, too.
    expect(scheduleAt(age, 1).usable({ ...held, leasedUntil: age + 3 * MINUTE })).toBe(usable[0]);
    const [first = 0, second = 0] = [0, 1].map((rank) => scheduleAt(age, rank).dueAt(held) ?? 0);
    expect(second).toBeGreaterThan(first);
  },
);

describe('schedule of a grant at a hub', () => {
  const portal = { ...ending, refreshEndsAccessToken: false };
  const due = 2.4 * HOUR;

  test('the first hub of a site refreshes a grant when it is due, and each next one a tenth of the period later', () => {
    expect([0, 1, 2].map((rank) => scheduleAt(0, rank, portal).dueAt(held))).toEqual([
      due,
      due + 0.3 * HOUR,
      due + 0.6 * HOUR,
    ]);
    const idle = { ...portal, idleLifetime: HOUR };
    expect([0, 1].map((rank) => scheduleAt(0, rank, idle).dueAt(held))).toEqual([0.8 * HOUR, 0.9 * HOUR]);
  });

  test('no hub refreshes a grant before its throttle, or another hub, permits it', () => {
    const schedule = scheduleAt(0, 1, portal);
    expect(schedule.dueAt({ ...held, throttledUntil: 5 * HOUR })).toBe(5 * HOUR);
    expect(schedule.dueAt({ ...held, throttledUntil: 5 * HOUR, leasedUntil: MINUTE })).toBe(MINUTE);
    expect(schedule.onDemandAt({ ...held, leasedUntil: MINUTE })).toBe(MINUTE);
    expect(schedule.onDemandAt(held)).toBe(2 * SECOND);
  });

  test('a grant is due from exactly its time on, and one that was refused never is', () => {
    expect([due - 1, due].map((at) => scheduleAt(at, 0, portal).isDue(held))).toEqual([false, true]);
    expect([2 * SECOND - 1, 2 * SECOND].map((at) => scheduleAt(at, 0, portal).mayRefreshOnDemand(held))).toEqual([
      false,
      true,
    ]);
    const problem = { code: 'refused', message: '', since: instantAt(0) } as const;
    const refused = { ...held, health: { kind: 'refused', problem, failures: 1, retryAt: null } } as const;
    expect([scheduleAt(HOUR, 1, portal).dueAt(refused), scheduleAt(HOUR, 0, portal).isDue(refused)]).toEqual([
      null,
      false,
    ]);
  });

  test('appliances may use a token until it expires, unless a refresh ends it or its age is unknown', () => {
    expect(scheduleAt(HOUR, 0, portal).usable(held)).toBe(2 * HOUR);
    expect(scheduleAt(HOUR, 0, portal).remaining(held)).toBe(2 * HOUR);
    expect(scheduleAt(HOUR, 0, portal).age(held)).toBe(HOUR);
    const unknown = { ...held, grant: sampleGrant({ obtained: instantAt(0, 'boot-0') }) };
    expect(scheduleAt(HOUR, 0).usable(unknown)).toBeNull();
    const problem = { code: 'refused', message: '', since: instantAt(0) } as const;
    const refused = { ...held, health: { kind: 'refused', problem, failures: 1, retryAt: null } } as const;
    expect(scheduleAt(HOUR, 0).usable(refused)).toBe(2 * HOUR);
  });

  test.each(['a', 'ntp'])(
    "after a boot the age of a portal's tokens is measured by its own clock or NTP's, and not by that of another portal: %s",
    (source) => {
      const clock = { now: () => instantAt(HOUR, 'boot-2') };
      const environment = { clock, random: systemRandom, log: logTo(() => undefined) };
      const referenceClock = new ReferenceClock(environment);
      const issuedAt = instantAt(HOUR).wall - 4 * HOUR;
      const both = ['a', 'b'].map((connection) => ({
        ...held,
        grant: sampleGrant({ connection, obtained: instantAt(0), lifetime: 3 * HOUR, portalTime: issuedAt }),
      }));
      const schedule = new RefreshSchedule(
        environment,
        referenceClock,
        (name) => ({ ...portal, identity: { ...portal.identity, name } }),
        () => 0.5,
      );
      // This portal's clock is two hours behind.
      referenceClock.recordPortalTime('a', issuedAt + 2 * HOUR);
      expect(both.map((each) => schedule.usable(each))).toEqual([HOUR - SECOND, null]);
      if (source === 'a') referenceClock.recordPortalTime('b', issuedAt + 4 * HOUR);
      else referenceClock.recordNtpTime();
      expect(both.map((each) => schedule.usable(each))).toEqual([source === 'a' ? HOUR - SECOND : 0, 0]);
    },
  );

  test('the retries of a grant follow the settings of its portal, and are careful if it has none', () => {
    const early = { ...portal, retryLostAnswer: 'early', idleLifetime: HOUR } as const;
    expect(scheduleAt(0, 0, early).retryContext('')).toMatchObject({ retryLostAnswer: 'early', loginLimits: early });
    const none = new RefreshSchedule(
      { clock: { now: () => instantAt(0) }, random: systemRandom },
      new ReferenceClock({ clock: { now: () => instantAt(0) }, log: logTo(() => undefined) }),
      () => undefined,
      () => 0.5,
    );
    expect(none.retryContext('')).not.toHaveProperty('loginLimits');
    expect(none.retryContext('').retryLostAnswer).toBe('late');
    expect(none.dueAt(held)).toBe(due);
  });
});

describe('order of the hubs of a site for a connection', () => {
  const names = ['latchkey-a', 'latchkey-b', 'latchkey-c'];
  const connections = Array.from({ length: 300 }, (_, index) => `connection ${index}`);
  const rankOf = (hubId: string, connection: string, dead: readonly string[] = []) =>
    createHubRanking({ hubId, hubs: names.map((id) => ({ id, isAlive: !dead.includes(id) })) })(connection);

  test('each hub that is alive has its own rank for a connection, and each is the first one for a part of them', () => {
    const firsts = connections.map((connection) => {
      const ranks = names.map((id) => rankOf(id, connection));
      expect([...ranks].sort()).toEqual([0, 1, 2]);
      return names[ranks.indexOf(0)];
    });
    for (const id of names) {
      const share = firsts.filter((first) => first === id).length;
      expect(share).toBeGreaterThan(60);
      expect(share).toBeLessThan(140);
    }
  });

  test('a hub that has died moves only those behind it, and a hub that the site does not list yet has a rank, too', () => {
    for (const connection of connections) {
      const [a, b, c] = names.map((id) => rankOf(id, connection));
      expect(rankOf('latchkey-a', connection, ['latchkey-c'])).toBe((a ?? 0) - ((c ?? 0) < (a ?? 0) ? 1 : 0));
      expect(rankOf('latchkey-b', connection, ['latchkey-c'])).toBe((b ?? 0) - ((c ?? 0) < (b ?? 0) ? 1 : 0));
      expect(rankOf('latchkey-a', connection, names)).toBe(0);
      expect(createHubRanking({ hubId: 'latchkey-d', hubs: [] })(connection)).toBe(0);
    }
  });

  test('a hub without a site is always the first one', () => {
    expect(createHubRanking(null)('any')).toBe(0);
  });
});
