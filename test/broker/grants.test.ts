import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { Secret } from '../../src/core/secret.ts';
import { HOUR, MINUTE, SECOND } from '../core/samples.ts';
import { BrokerHarness } from './broker-harness.ts';
import { administrationOf } from './broker-services.ts';

const healthOf = (harness: BrokerHarness, id: string) => harness.run.grants.get(id)?.health;
const problemOf = (harness: BrokerHarness, id: string) => {
  const health = healthOf(harness, id);
  return health === undefined || health.kind === 'good' ? null : health.problem.code;
};

describe('active grant', () => {
  test("a grant is refreshed at 80 % of each access token's lifetime, and no refresh token is sent twice", async () => {
    const { harness, id } = await BrokerHarness.startPaired();
    await harness.time.pass(47 * MINUTE);
    expect(harness.refreshes).toBe(0);
    await harness.time.pass(2 * MINUTE);
    expect(harness.refreshes).toBe(1);
    await harness.time.pass(10 * HOUR);
    expect(harness.refreshes).toBe(13);
    expect(await harness.whoami(await harness.token(id))).toBe(200);
    expect(harness.emulator.observations).toMatchObject({ refreshTokensRepeated: 0, overlappingRefreshes: 0 });
    expect(harness.emulator.grants()).toMatchObject([{ generation: 14, revoked: false }]);
  });

  test('a grant is not affected by jumps of the wall clock', async () => {
    const { harness, id } = await BrokerHarness.startPaired();
    const token = await harness.token(id);
    for (const jump of [-400 * 24 * HOUR, 400 * 24 * HOUR, 9 * 365 * 24 * HOUR]) {
      const right = harness.time.wall;
      harness.time.wall += jump;
      await harness.time.pass(5 * MINUTE);
      expect(await harness.token(id)).toBe(token);
      harness.time.wall = right + 5 * MINUTE;
    }
    expect(harness.refreshes).toBe(0);
  });

  test('a grant keeps its access token and refresh time over a restart', async () => {
    const { harness, id } = await BrokerHarness.startPaired();
    const token = await harness.token(id);
    await harness.time.pass(20 * MINUTE);
    await harness.stop();
    harness.time.suspend(10 * MINUTE);
    await harness.start();
    expect(await harness.token(id)).toBe(token);
    expect(await harness.run.tokenIssuer.issue(id, null)).toMatchObject({ expiresIn: expect.closeTo(30 * 60, -2) });
    await harness.time.pass(19 * MINUTE);
    expect(harness.refreshes).toBe(1);
  });

  test.each([-5 * HOUR, 0, 5 * HOUR])(
    'a grant is refreshed after a reboot before its token is issued, with the wall clock off by %d ms',
    async (off) => {
      const { harness, id } = await BrokerHarness.startPaired();
      await harness.reboot(harness.time.wall + off);
      expect(harness.run.grants.get(id)).toMatchObject({ health: { kind: 'good' } });
      expect(await harness.run.tokenIssuer.issue(id, null)).toMatchObject({ kind: 'token', expiresIn: 3600 });
      expect(harness.refreshes).toBe(1);
    },
  );

  test("the portal's time of new tokens is that of their own portal, whatever the clock of another one says", async () => {
    const { harness, id } = await BrokerHarness.startPaired();
    harness.run.referenceClock.recordPortalTime('other', harness.time.wall - HOUR);
    for (const renew of [() => harness.run.grants.refresh(id), () => harness.pairAgain('wallbox')]) {
      await renew();
      const stored = await harness.run.store.grants.get(id);
      expect(Math.abs((stored?.grant.portalTime ?? 0) - harness.time.wall)).toBeLessThan(MINUTE);
    }
  });

  test('only eight of twelve due refreshes are sent to a portal that hangs, and a forced one still goes out at once', async () => {
    const harness = await BrokerHarness.start();
    const ids: string[] = [];
    for (let i = 0; i < 12; i += 1) ids.push(await harness.addPairedAppliance(`appliance-${i}`));
    const response = Promise.withResolvers<void>();
    harness.portal.fail('token', ...Array(8).fill({ kind: 'wait', until: response.promise } as const));
    harness.time.suspend(50 * MINUTE);
    const [first = ''] = ids;
    for (let s = 0; s < 60 && harness.run.grants.get(first)?.refreshing === null; s += 1) harness.time.skip(SECOND);
    await expect.poll(() => harness.refreshes).toBe(8);

    const last = ids.at(-1) ?? '';
    const token = harness.run.grants.get(last)?.grant.refreshToken?.reveal();
    await harness.run.grants.refresh(last);
    expect(harness.refreshes).toBe(9);
    const sent = harness.portal.requests('token').map(({ form }) => form.get('refresh_token'));
    expect(sent.filter((one) => one !== null)[8]).toBe(token);
    response.resolve();
    await expect.poll(() => harness.refreshes).toBe(12);
  });
});

describe('lost answer to a refresh', () => {
  test('a grant is refreshed again seconds after a lost answer, if the portal has a grace time', async () => {
    const { harness, id } = await BrokerHarness.startPaired({
      emulator: { refreshGrace: 1, onReuse: 'revoke-family' },
    });
    harness.portal.fail('token', { kind: 'commit then drop' });
    await harness.untilRefreshed();
    expect(problemOf(harness, id)).toBe('answer_lost');
    expect(await harness.run.store.grants.get(id)).toMatchObject({ attempt: null, grant: { doubt: { sends: 1 } } });
    await harness.time.pass(4 * SECOND);
    expect(harness.refreshes).toBe(2);
    expect(healthOf(harness, id)).toEqual({ kind: 'good' });
    expect(await harness.run.store.grants.get(id)).toMatchObject({ grant: { generation: 2, doubt: null } });
  });

  test.each(['truncate', 'commit then drop'] as const)(
    'after two lost answers (%s) a grant waits until shortly before its access token expires',
    async (kind) => {
      const { harness, id } = await BrokerHarness.startPaired();
      const token = await harness.token(id);
      harness.portal.fail('token', { kind }, { kind });
      await harness.untilRefreshed();
      await harness.time.pass(4 * SECOND);
      expect(harness.refreshes).toBe(2);
      await harness.time.pass(10 * MINUTE);
      expect(harness.refreshes).toBe(2);
      expect(await harness.token(id)).toBe(token);
      await harness.time.pass(MINUTE);
      expect(harness.refreshes).toBe(3);
      expect(healthOf(harness, id)).toMatchObject({
        kind: 'refused',
        problem: { message: expect.stringMatching(/^An answer was lost on 2031-05-05T06:5\d:/) },
      });
      expect(await harness.token(id)).toBe(token);
    },
  );

  test('with retry_lost_answer late a refresh waits until the access token has expired, also over a restart', async () => {
    const { harness, id } = await BrokerHarness.startPaired({ retryLostAnswer: 'late' });
    const token = await harness.token(id);
    harness.portal.fail('token', { kind: 'drop' });
    await harness.untilRefreshed();
    await harness.time.pass(5 * MINUTE);
    await harness.restart();
    for (let issued = await harness.run.tokenIssuer.issue(id, null); issued.kind === 'token'; ) {
      expect(harness.refreshes).toBe(1);
      expect(await harness.token(id)).toBe(token);
      await harness.time.pass(SECOND);
      issued = await harness.run.tokenIssuer.issue(id, null);
    }
    await harness.time.pass(SECOND);
    expect(harness.refreshes).toBe(1);
    expect(await harness.whoami(token)).toBe(401);
    await harness.time.pass(SECOND);
    expect(harness.refreshes).toBe(2);
    expect(healthOf(harness, id)).toEqual({ kind: 'good' });
    expect(await harness.whoami(await harness.token(id))).toBe(200);
  });

  test('with retry_lost_answer late a refresh waits after a reboot, too, once the true time is known', async () => {
    const { harness, id } = await BrokerHarness.startPaired({ retryLostAnswer: 'late' });
    const other = await harness.addPairedAppliance('heatpump');
    harness.portal.fail('token', { kind: 'drop' });
    await harness.run.grants.refresh(id);
    const token = await harness.token(id);
    await harness.reboot();
    expect(problemOf(harness, id)).toBe('answer_lost');
    // The refresh of the other appliance brings the portal's time.
    expect(await harness.whoami(await harness.token(other))).toBe(200);
    const before = harness.refreshes;
    const generation = () => harness.run.grants.get(id)?.grant.generation;
    await harness.time.pass(30 * MINUTE);
    expect(harness.refreshes).toBe(before);
    expect(generation()).toBe(1);
    expect(await harness.token(id)).toBe(token);
    await harness.time.pass(31 * MINUTE);
    expect(generation()).toBe(2);
    expect(healthOf(harness, id)).toEqual({ kind: 'good' });
  });

  test('a grant is in doubt after a power cut interrupted its refresh', async () => {
    const { harness, id } = await BrokerHarness.startPaired({ emulator: { refreshGrace: 1 } });
    const response = harness.portal.hold('token');
    void harness.run.grants.refresh(id);
    await expect.poll(() => harness.emulator.grants()[0]?.generation).toBe(2);
    const crashed = harness.crash();
    response.resolve();
    await crashed;
    harness.time.reboot(harness.time.wall);
    await harness.start();
    expect(problemOf(harness, id)).toBe('answer_lost');
    expect(await harness.run.store.grants.get(id)).toMatchObject({ attempt: null, grant: { doubt: { sends: 1 } } });
    await harness.time.pass(4 * SECOND);
    expect(healthOf(harness, id)).toEqual({ kind: 'good' });
    expect(await harness.whoami(await harness.token(id))).toBe(200);
  });
});

describe.each([
  ['a helper portal', {}],
  ['an OAuth 2.0 portal', { oauth2: { login: 'device' } }],
] as const)('a firewall before %s', (_, options) => {
  const FORBIDDEN = { kind: 'answer', status: 403, body: '<!doctype html><title>Forbidden</title>' } as const;

  async function startPaired() {
    const { harness, id } = await BrokerHarness.startUnpaired(options);
    const run = await harness.beginPairing('wallbox');
    const { step } = run.pairing;
    if (step.kind === 'waiting' && step.link.kind === 'device')
      await harness.emulator.approveDevice({ userCode: step.link.userCode, user: 'demo' });
    else await harness.login(run);
    await harness.time.pass(10 * SECOND);
    return { harness, id };
  }

  test('a page instead of an answer, for half a day, ends no login, and the hub is well minutes after the portal', async () => {
    const { harness, id } = await startPaired();
    harness.portal.fail('token', ...Array<typeof FORBIDDEN>(500).fill(FORBIDDEN));
    for (let hour = 0; hour < 12; hour += 1) {
      await harness.time.pass(HOUR);
      expect(await harness.token(id)).toBe('unavailable');
    }
    expect(harness.statusOf('wallbox')).toMatchObject({
      state: 'retrying',
      problem: {
        code: 'portal_rejected',
        message: 'Something before the portal refuses the hub: HTTP 403 without an error code of the portal',
      },
    });
    expect(harness.events.map(({ event }) => event)).not.toContain('pairing_needed');
    harness.portal.clearFaults('token');
    for (let minute = 0; minute < 5 && (await harness.token(id)) === 'unavailable'; minute += 1)
      await harness.time.pass(MINUTE);
    expect(await harness.whoami(await harness.token(id))).toBe(200);
  });

  test('the problem of a redirect says where it leads, and names a key of the portal', async () => {
    const { harness, id } = await startPaired();
    const headers = { location: 'https://portal.example/sso/token/' };
    harness.portal.fail('token', { kind: 'answer', status: 301, headers });
    await harness.run.grants.refresh(id);
    expect(harness.statusOf('wallbox').problem?.message).toMatch(
      /^The portal's token endpoint sends the hub elsewhere: HTTP 301, a redirect to https:\/\/portal.example\/sso\/token\/, .*portals\.\w+\.\w+/,
    );
  });
});

test('a login that the portal ended with an error of its own is tried again on demand, and comes back by itself', async () => {
  const { harness, id } = await BrokerHarness.startPaired();
  const rejected = { kind: 'answer', status: 400, body: '{"error":"unsupported_grant_type"}' } as const;
  harness.portal.fail('token', ...Array<typeof rejected>(500).fill(rejected));
  for (let minutes = 0; minutes < 150; minutes += 5) {
    await harness.time.pass(5 * MINUTE);
    await harness.token(id);
  }
  expect(await harness.token(id)).toBe('needs_pairing');
  harness.portal.clearFaults('token');
  await harness.time.pass(5 * MINUTE);
  expect(await harness.whoami(await harness.token(id))).toBe(200);
});

describe('one-time log entries about a grant', () => {
  const eventsNamed = (harness: BrokerHarness, event: string) => harness.events.filter((one) => one.event === event);

  test('a lost answer is logged once, even if more answers are lost and the hub restarts', async () => {
    const { harness, id } = await BrokerHarness.startPaired({ retryLostAnswer: 'late' });
    harness.portal.fail('token', { kind: 'drop' }, { kind: 'drop' }, { kind: 'answer', status: 429 });
    await harness.untilRefreshed();
    expect(eventsNamed(harness, 'answer_lost')).toMatchObject([
      { fields: { connection: 'wallbox', message: expect.stringContaining('An answer was lost on 2031-05-05T06:5') } },
    ]);
    await harness.run.grants.refresh(id);
    await harness.run.grants.refresh(id);
    await harness.restart();
    expect(harness.refreshes).toBe(3);
    expect(problemOf(harness, id)).toBe('answer_lost');
    expect(eventsNamed(harness, 'answer_lost')).toHaveLength(1);
  });

  test('a refused grant is logged once as needing a pairing, also over a restart', async () => {
    const { harness, id } = await BrokerHarness.startPaired();
    harness.portal.fail('token', { kind: 'answer', status: 400, body: '{"error":"invalid_grant"}' });
    await harness.untilRefreshed();
    await harness.restart();
    await harness.time.pass(24 * HOUR);
    expect(healthOf(harness, id)).toMatchObject({ kind: 'refused' });
    expect(eventsNamed(harness, 'pairing_needed')).toMatchObject([
      { fields: { connection: 'wallbox', message: expect.stringContaining('The portal refused the grant') } },
    ]);
    expect(eventsNamed(harness, 'answer_lost')).toEqual([]);
  });
});

test('a lost answer that could not be saved is saved with the next attempt, so a crash does not lose it', async () => {
  const { harness, id } = await BrokerHarness.startPaired({ emulator: { refreshGrace: 9 } });
  harness.failingWrites.add('grants.endAttempt');
  harness.portal.fail('token', { kind: 'drop' }, { kind: 'wait', until: new Promise(() => undefined) });
  await harness.untilRefreshed();
  expect(await harness.run.store.grants.get(id)).toMatchObject({ grant: { doubt: null } });
  harness.failingWrites.clear();
  await harness.time.pass(SECOND);
  harness.time.skip(3 * SECOND);
  await expect.poll(() => harness.refreshes).toBe(2);
  await harness.crash();
  await harness.start();
  expect(await harness.run.store.grants.get(id)).toMatchObject({ attempt: null, grant: { doubt: { sends: 2 } } });
});

test.each(['early', 'late'] as const)(
  'a forced refresh is sent at once for a grant in doubt (%s), for one that the portal defers and for a refused one',
  async (retryLostAnswer) => {
    const { harness, id } = await BrokerHarness.startPaired({ emulator: { refreshGrace: 9 }, retryLostAnswer });
    harness.portal.fail('token', { kind: 'drop' });
    if (retryLostAnswer === 'early') harness.portal.fail('token', { kind: 'drop' });
    await harness.untilRefreshed();
    await harness.time.pass(4 * SECOND);
    expect(problemOf(harness, id)).toBe('answer_lost');
    await harness.run.grants.refresh(id);
    expect(healthOf(harness, id)).toEqual({ kind: 'good' });
    harness.portal.fail('token', { kind: 'answer', status: 429, headers: { 'retry-after': '36000' } });
    await harness.run.grants.refresh(id);
    expect(problemOf(harness, id)).toBe('portal_deferred');
    await harness.run.grants.refresh(id);
    expect(healthOf(harness, id)).toEqual({ kind: 'good' });
    harness.portal.fail('token', { kind: 'answer', status: 400, body: '{"error":"invalid_grant"}' });
    await harness.run.grants.refresh(id);
    expect(healthOf(harness, id)).toMatchObject({ kind: 'refused' });
    await harness.run.grants.refresh(id);
    expect(healthOf(harness, id)).toEqual({ kind: 'good' });
    expect(await harness.run.store.grants.get(id)).toMatchObject({ grant: { refused: null, doubt: null } });
  },
);

describe('late refresh response', () => {
  async function startSlowRefresh(harness: BrokerHarness, id: string) {
    const response = harness.portal.hold('token');
    const refreshing = harness.run.grants.refresh(id);
    await expect.poll(() => harness.emulator.grants()[0]?.generation).toBe(2);
    return { refreshing, response };
  }

  test('a late refresh response for a deleted grant is discarded', async () => {
    const { harness, id } = await BrokerHarness.startPaired();
    const { refreshing, response } = await startSlowRefresh(harness, id);
    await harness.run.grants.delete(id);
    response.resolve();
    await refreshing;
    expect(harness.run.grants.get(id)).toBeUndefined();
    expect(harness.events.map(({ event }) => event)).toContain('refresh_superseded');
    expect(await harness.run.store.grants.all()).toEqual([]);
    expect(await harness.token(id)).toBe('not_paired');
  });

  test('a grant that was deleted leaves nothing behind: the first refresh after a new login is logged again', async () => {
    const { harness, id } = await BrokerHarness.startPaired();
    const logged = () => harness.events.filter(({ level, event }) => level === 'info' && event === 'token_refreshed');
    await harness.run.grants.refresh(id);
    await harness.run.grants.refresh(id);
    expect(logged()).toHaveLength(1);
    await harness.run.grants.delete(id);
    await harness.pairAgain('wallbox');
    await harness.run.grants.refresh(id);
    expect(logged()).toHaveLength(2);
  });

  test('a stopping hub waits for a late refresh response and saves it', async () => {
    const { harness, id } = await BrokerHarness.startPaired();
    const { response } = await startSlowRefresh(harness, id);
    const stopping = harness.stop();
    const stopped = await Promise.race([stopping.then(() => true), sleep(100, false)]);
    expect(stopped).toBe(false);
    response.resolve();
    await stopping;
    await harness.start();
    expect(harness.run.grants.get(id)).toMatchObject({ grant: { generation: 2 }, health: { kind: 'good' } });
    expect(await harness.whoami(await harness.token(id))).toBe(200);
  });
});

describe('grants while the store is unwritable', () => {
  test('new tokens are served from memory while the store is unwritable, and saved when it is writable again', async () => {
    const { harness, id } = await BrokerHarness.startPaired();
    harness.failingWrites.add('grants.replace');
    await harness.untilRefreshed();
    const token = await harness.token(id);
    expect(await harness.whoami(token)).toBe(200);
    expect(problemOf(harness, id)).toBe('store_unwritable');
    expect(await harness.run.store.grants.get(id)).toMatchObject({ grant: { generation: 1 } });
    await harness.time.pass(10 * MINUTE);
    expect(harness.refreshes).toBe(1);
    harness.failingWrites.clear();
    await harness.time.pass(5 * MINUTE);
    expect(healthOf(harness, id)).toEqual({ kind: 'good' });
    const kept = await harness.run.store.grants.get(id);
    expect(kept).toMatchObject({ attempt: null, grant: { generation: 2 } });
    expect(kept?.grant.accessToken.reveal()).toBe(token);
    await harness.untilRefreshed();
    expect(harness.emulator.observations.refreshTokensRepeated).toBe(0);
  });

  test('a refresh that cannot be written ahead is not sent, and the current access token is issued until it expires', async () => {
    const { harness, id } = await BrokerHarness.startPaired();
    const token = await harness.token(id);
    harness.failingWrites.add('grants.beginAttempt');
    await harness.time.pass(59 * MINUTE);
    expect(harness.refreshes).toBe(0);
    expect(problemOf(harness, id)).toBe('store_unwritable');
    expect(await harness.token(id)).toBe(token);
    harness.failingWrites.clear();
    await harness.time.pass(5 * MINUTE);
    expect(harness.refreshes).toBe(1);
    expect(healthOf(harness, id)).toEqual({ kind: 'good' });
  });

  test('deleting a grant fails and keeps it while the store is unwritable', async () => {
    const { harness, id } = await BrokerHarness.startPaired();
    harness.failingWrites.add('grants.forget');
    await expect(harness.run.grants.delete(id)).rejects.toMatchObject({ code: 'store_unwritable' });
    expect(await harness.whoami(await harness.token(id))).toBe(200);
  });

  test('a deleted grant that was only in memory does not return after a restart', async () => {
    const { harness, id } = await BrokerHarness.startPaired();
    harness.failingWrites.add('grants.replace');
    await harness.untilRefreshed();
    harness.failingWrites.clear();
    await harness.run.grants.delete(id);
    expect(await harness.run.store.grants.all()).toEqual([]);
    await harness.restart();
    expect(await harness.token(id)).toBe('not_paired');
  });
});

test('unpairing says whether the portal has ended the login, and of a portal without an endpoint for that that it has not', async () => {
  const { harness } = await BrokerHarness.startPaired();
  const { unpair } = administrationOf(harness);
  expect([await unpair('wallbox'), await unpair('wallbox')]).toEqual([false, null]);
});

test('a grant that is written anew while it is deleted is deleted nevertheless', async () => {
  const { harness, id } = await BrokerHarness.startPaired();
  const { store, grants } = harness.run;
  const forget = store.grants.forget.bind(store);
  store.grants.forget = async (connection) => {
    const { grant } = (await store.grants.get(id)) ?? expect.fail('it is deleted');
    await store.grants.replace({ ...grant, generation: grant.generation + 1, refreshToken: new Secret('newer') });
    return forget(connection);
  };
  expect((await grants.delete(id))?.refreshToken?.reveal()).toBe('newer');
  expect(await store.grants.get(id)).toBeNull();
});

test('an appliance keeps its grant when its portal is no longer configured', async () => {
  const { harness, id } = await BrokerHarness.startPaired();
  const token = await harness.token(id);
  harness.configured = false;
  await harness.time.pass(50 * MINUTE);
  expect(problemOf(harness, id)).toBe('misconfigured');
  expect(harness.refreshes).toBe(0);
  expect(await harness.token(id)).toBe(token);
  expect(await harness.run.store.grants.get(id)).toMatchObject({
    attempt: null,
    grant: { doubt: null, refused: null },
  });
  await harness.restart();
  // The grant is not said to have wrong credentials: the status says at once that the portal is missing.
  expect(harness.statusOf('wallbox').problem).toMatchObject({ code: 'misconfigured', condition: 'portal_missing' });
});

test('a login that replaces a grant ends the one before, so that no late answer of that one is kept', async () => {
  const { harness, id } = await BrokerHarness.startPaired();
  const former = harness.run.grants.get(id);
  if (former === undefined) throw new Error('the connection has no grant');
  harness.run.grants.replace({ ...former.grant, generation: former.grant.generation + 1 });
  expect([former.hasEnded, harness.run.grants.get(id)?.hasEnded]).toEqual([true, false]);
});
