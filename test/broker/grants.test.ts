import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { BrokerHarness } from './broker-harness.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

const healthOf = (home: BrokerHarness, id: string) => home.run.grants.get(id)?.health;
const problemOf = (home: BrokerHarness, id: string) => {
  const health = healthOf(home, id);
  return health === undefined || health.kind === 'good' ? null : health.problem.code;
};

describe('active grant', () => {
  test("a grant is refreshed at 80 % of each access token's lifetime, and no refresh token is sent twice", async () => {
    await using home = await BrokerHarness.start();
    const id = await home.addPairedAppliance();
    await home.time.pass(47 * MINUTE);
    expect(home.refreshes).toBe(0);
    await home.time.pass(2 * MINUTE);
    expect(home.refreshes).toBe(1);
    await home.time.pass(10 * HOUR);
    expect(home.refreshes).toBe(13);
    expect(await home.whoami(await home.token(id))).toBe(200);
    expect(home.emulator.observations).toMatchObject({ refreshTokensRepeated: 0, overlappingRefreshes: 0 });
    expect(home.emulator.grants()).toMatchObject([{ generation: 14, revoked: false }]);
  });

  test('a grant is refreshed when the machine wakes from suspend', async () => {
    await using home = await BrokerHarness.start();
    const id = await home.addPairedAppliance();
    home.time.suspend(5 * HOUR);
    await home.time.pass(MINUTE);
    expect(home.refreshes).toBe(1);
    expect(await home.whoami(await home.token(id))).toBe(200);
  });

  test('a grant is not affected by jumps of the wall clock', async () => {
    await using home = await BrokerHarness.start();
    const id = await home.addPairedAppliance();
    const token = await home.token(id);
    for (const jump of [-400 * 24 * HOUR, 400 * 24 * HOUR, 9 * 365 * 24 * HOUR]) {
      const right = home.time.wall;
      home.time.wall += jump;
      await home.time.pass(5 * MINUTE);
      expect(await home.token(id)).toBe(token);
      home.time.wall = right + 5 * MINUTE;
    }
    expect(home.refreshes).toBe(0);
  });

  test('a grant keeps its access token and refresh time over a restart', async () => {
    await using home = await BrokerHarness.start();
    const id = await home.addPairedAppliance();
    const token = await home.token(id);
    await home.time.pass(20 * MINUTE);
    await home.stop();
    home.time.suspend(10 * MINUTE);
    await home.start();
    expect(await home.token(id)).toBe(token);
    expect(await home.run.tokenIssuer.issue(id, null)).toMatchObject({ expiresIn: expect.closeTo(30 * 60, -2) });
    await home.time.pass(19 * MINUTE);
    expect(home.refreshes).toBe(1);
  });

  test.each([-5 * HOUR, 0, 5 * HOUR])(
    'a grant is refreshed after a reboot before its token is issued, with the wall clock off by %d ms',
    async (off) => {
      await using home = await BrokerHarness.start();
      const id = await home.addPairedAppliance();
      await home.stop();
      home.time.reboot(home.time.wall + off);
      await home.start();
      expect(home.run.grants.get(id)).toMatchObject({ health: { kind: 'good' } });
      expect(await home.run.tokenIssuer.issue(id, null)).toMatchObject({ kind: 'token', expiresIn: 3600 });
      expect(home.refreshes).toBe(1);
    },
  );

  test('a grant is refreshed within half a lifetime after a reboot if no appliance requests its token', async () => {
    await using home = await BrokerHarness.start();
    await home.addPairedAppliance();
    await home.stop();
    home.time.reboot(0);
    await home.start();
    await home.time.pass(15 * MINUTE - SECOND);
    expect(home.refreshes).toBe(0);
    await home.time.pass(SECOND);
    expect(home.refreshes).toBe(1);
  });

  test("a grant's token is issued after a reboot once another grant's refresh has brought the portal's time", async () => {
    await using home = await BrokerHarness.start();
    const other = await home.addPairedAppliance('heater');
    const id = await home.addPairedAppliance();
    const token = await home.token(id);
    await home.stop();
    home.time.reboot(home.time.wall + MINUTE);
    await home.start();
    await home.token(other);
    expect(await home.token(id)).toBe(token);
    expect(home.refreshes).toBe(1);
    await home.time.pass(45 * MINUTE);
    expect(home.refreshes).toBe(1);
  });

  test('only eight of twelve due refreshes are sent to a portal that hangs, and a forced one still goes out at once', async () => {
    await using home = await BrokerHarness.start();
    const ids: string[] = [];
    for (let i = 0; i < 12; i += 1) ids.push(await home.addPairedAppliance(`appliance-${i}`));
    const answer = Promise.withResolvers<void>();
    home.portal.fail('token', ...Array(8).fill({ kind: 'wait', until: answer.promise } as const));
    home.time.suspend(50 * MINUTE);
    const [first = ''] = ids;
    for (let s = 0; s < 60 && home.run.grants.get(first)?.refreshing === null; s += 1) home.time.skip(SECOND);
    await expect.poll(() => home.refreshes).toBe(8);

    const last = ids.at(-1) ?? '';
    const token = home.run.grants.get(last)?.grant.refreshToken.reveal();
    await home.run.grants.refresh(last);
    expect(home.refreshes).toBe(9);
    const sent = home.portal.requests('token').map(({ form }) => form.get('refresh_token'));
    expect(sent.filter((one) => one !== null)[8]).toBe(token);
    answer.resolve();
    await expect.poll(() => home.refreshes).toBe(12);
  });

  test("an access token's lifetime counts from when the hub requested it, not from when a slow response came", async () => {
    await using home = await BrokerHarness.start();
    const id = await home.addPairedAppliance();
    const answer = Promise.withResolvers<void>();
    home.portal.fail('token', { kind: 'wait', until: answer.promise });
    const refreshing = home.run.grants.refresh(id);
    await expect.poll(() => home.emulator.grants()[0]?.generation).toBe(2);
    home.time.skip(20 * SECOND);
    answer.resolve();
    await refreshing;
    expect(await home.run.tokenIssuer.issue(id, null)).toMatchObject({ expiresIn: 3580 });
  });

  test('a grant keeps its refresh token if the refresh response has none', async () => {
    await using home = await BrokerHarness.start({ emulator: { refreshGrace: 9 } });
    const id = await home.addPairedAppliance();
    const before = home.run.grants.get(id)?.grant.refreshToken.reveal();
    home.portal.fail('token', { kind: 'alter', with: (body) => body.replace('refresh_token', 'x') });
    await home.run.grants.refresh(id);
    expect(home.run.grants.get(id)?.grant.refreshToken.reveal()).toBe(before);
    expect(home.run.grants.get(id)?.grant.generation).toBe(2);
    await home.run.grants.refresh(id);
    expect(healthOf(home, id)).toEqual({ kind: 'good' });
    expect(home.run.grants.get(id)?.grant.refreshToken.reveal()).not.toBe(before);
  });
});

describe('lost answer to a refresh', () => {
  test('a grant is refreshed again seconds after a lost answer, if the portal has a grace time', async () => {
    await using home = await BrokerHarness.start({ emulator: { refreshGrace: 1, onReuse: 'revoke-family' } });
    const id = await home.addPairedAppliance();
    home.portal.fail('token', { kind: 'commit then drop' });
    await home.untilRefreshed();
    expect(problemOf(home, id)).toBe('answer_lost');
    expect(await home.run.store.grant(id)).toMatchObject({ attempt: null, grant: { doubt: { sends: 1 } } });
    await home.time.pass(4 * SECOND);
    expect(home.refreshes).toBe(2);
    expect(healthOf(home, id)).toEqual({ kind: 'good' });
    expect(await home.run.store.grant(id)).toMatchObject({ grant: { generation: 2, doubt: null } });
  });

  test.each(['truncate', 'commit then drop'] as const)(
    'after two lost answers (%s) a grant waits until shortly before its access token expires',
    async (kind) => {
      await using home = await BrokerHarness.start();
      const id = await home.addPairedAppliance();
      const token = await home.token(id);
      home.portal.fail('token', { kind }, { kind });
      await home.untilRefreshed();
      await home.time.pass(4 * SECOND);
      expect(home.refreshes).toBe(2);
      await home.time.pass(10 * MINUTE);
      expect(home.refreshes).toBe(2);
      expect(await home.token(id)).toBe(token);
      await home.time.pass(MINUTE);
      expect(home.refreshes).toBe(3);
      expect(healthOf(home, id)).toMatchObject({
        kind: 'refused',
        problem: { message: expect.stringMatching(/^An answer was lost on 2031-05-05T06:5\d:/) },
      });
      expect(await home.token(id)).toBe(token);
    },
  );

  test('with retry_lost_answer late a refresh waits until the access token has expired, also over a restart', async () => {
    await using home = await BrokerHarness.start({ retryLostAnswer: 'late' });
    const id = await home.addPairedAppliance();
    const token = await home.token(id);
    home.portal.fail('token', { kind: 'drop' });
    await home.untilRefreshed();
    await home.time.pass(5 * MINUTE);
    await home.stop();
    await home.start();
    for (let left = await home.run.tokenIssuer.issue(id, null); left.kind === 'token'; ) {
      expect(home.refreshes).toBe(1);
      expect(await home.token(id)).toBe(token);
      await home.time.pass(SECOND);
      left = await home.run.tokenIssuer.issue(id, null);
    }
    await home.time.pass(SECOND);
    expect(home.refreshes).toBe(1);
    expect(await home.whoami(token)).toBe(401);
    await home.time.pass(SECOND);
    expect(home.refreshes).toBe(2);
    expect(healthOf(home, id)).toEqual({ kind: 'good' });
    expect(await home.whoami(await home.token(id))).toBe(200);
  });

  test('with retry_lost_answer late a refresh waits after a reboot, too, once the true time is known', async () => {
    await using home = await BrokerHarness.start({ retryLostAnswer: 'late' });
    const id = await home.addPairedAppliance();
    const other = await home.addPairedAppliance('heatpump');
    home.portal.fail('token', { kind: 'drop' });
    await home.run.grants.refresh(id);
    const token = await home.token(id);
    await home.stop();
    home.time.reboot(home.time.wall);
    await home.start();
    expect(problemOf(home, id)).toBe('answer_lost');
    // Somebody wants another token, and with its answer comes the portal's time.
    expect(await home.whoami(await home.token(other))).toBe(200);
    const before = home.refreshes;
    const ofThis = () => home.run.grants.get(id)?.grant.generation;
    await home.time.pass(30 * MINUTE);
    expect(home.refreshes).toBe(before);
    expect(ofThis()).toBe(1);
    expect(await home.token(id)).toBe(token);
    await home.time.pass(31 * MINUTE);
    expect(ofThis()).toBe(2);
    expect(healthOf(home, id)).toEqual({ kind: 'good' });
  });

  test('a grant is in doubt after a power cut interrupted its refresh', async () => {
    await using home = await BrokerHarness.start({ emulator: { refreshGrace: 1 } });
    const id = await home.addPairedAppliance();
    const answer = Promise.withResolvers<void>();
    home.portal.fail('token', { kind: 'wait', until: answer.promise });
    void home.run.grants.refresh(id);
    await expect.poll(() => home.emulator.grants()[0]?.generation).toBe(2);
    const crashed = home.crash();
    answer.resolve();
    await crashed;
    home.time.reboot(home.time.wall);
    await home.start();
    expect(problemOf(home, id)).toBe('answer_lost');
    expect(await home.run.store.grant(id)).toMatchObject({ attempt: null, grant: { doubt: { sends: 1 } } });
    await home.time.pass(4 * SECOND);
    expect(healthOf(home, id)).toEqual({ kind: 'good' });
    expect(await home.whoami(await home.token(id))).toBe(200);
  });
});

describe('one-time log entries about a grant', () => {
  const told = (home: BrokerHarness, event: string) => home.events.filter((one) => one.event === event);

  test('a lost answer is logged once, even if more answers are lost and the hub restarts', async () => {
    await using home = await BrokerHarness.start({ retryLostAnswer: 'late' });
    const id = await home.addPairedAppliance();
    home.portal.fail('token', { kind: 'drop' }, { kind: 'drop' }, { kind: 'answer', status: 429 });
    await home.untilRefreshed();
    expect(told(home, 'answer_lost')).toMatchObject([
      { fields: { appliance: 'wallbox', message: expect.stringContaining('An answer was lost on 2031-05-05T06:5') } },
    ]);
    await home.run.grants.refresh(id);
    await home.run.grants.refresh(id);
    await home.stop();
    await home.start();
    expect(home.refreshes).toBe(3);
    expect(problemOf(home, id)).toBe('answer_lost');
    expect(told(home, 'answer_lost')).toHaveLength(1);
  });

  test('a refused grant is logged once as needing a pairing, also over a restart', async () => {
    await using home = await BrokerHarness.start();
    const id = await home.addPairedAppliance();
    home.portal.fail('token', { kind: 'answer', status: 400, body: '{"error":"invalid_grant"}' });
    await home.untilRefreshed();
    await home.stop();
    await home.start();
    await home.time.pass(24 * HOUR);
    expect(healthOf(home, id)).toMatchObject({ kind: 'refused' });
    expect(told(home, 'pairing_needed')).toMatchObject([
      { fields: { appliance: 'wallbox', message: expect.stringContaining('The portal refused the grant') } },
    ]);
    expect(told(home, 'answer_lost')).toEqual([]);
  });
});

test('an interrupted attempt for another refresh token than the stored one leaves the grant good', async () => {
  await using home = await BrokerHarness.start();
  const id = await home.addPairedAppliance();
  const stored = (await home.run.store.grant(id)) ?? expect.fail();
  const answer = Promise.withResolvers<void>();
  home.portal.fail('token', { kind: 'wait', until: answer.promise });
  void home.run.grants.refresh(id);
  await expect.poll(() => home.refreshes).toBe(1);
  const { attempt } = (await home.run.store.grant(id)) ?? expect.fail();
  const token = createHash('sha256').update(stored.grant.refreshToken.reveal()).digest('base64url');
  expect(attempt).toEqual({ token, at: expect.objectContaining({ boot: 'boot-1' }) });
  await home.run.store.beginAttempt(stored.grant, { token: 'of another token', at: home.time.now() });
  await home.crash();
  answer.resolve();
  await home.start();
  expect(problemOf(home, id)).toBeNull();
});

test('a grant is in doubt after its refresh failed with an unknown exception', async () => {
  await using home = await BrokerHarness.start({ retryLostAnswer: 'late' });
  const id = await home.addPairedAppliance();
  home.portalThrows = true;
  await home.run.grants.refresh(id);
  home.portalThrows = false;
  expect(problemOf(home, id)).toBe('answer_lost');
  await home.time.pass(30 * MINUTE);
  expect(home.refreshes).toBe(0);
});

test('a lost answer that could not be saved is saved with the next attempt, so a crash does not lose it', async () => {
  await using home = await BrokerHarness.start({ emulator: { refreshGrace: 9 } });
  const id = await home.addPairedAppliance();
  home.failingWrites.add('endAttempt');
  home.portal.fail('token', { kind: 'drop' }, { kind: 'wait', until: new Promise(() => undefined) });
  await home.untilRefreshed();
  expect(await home.run.store.grant(id)).toMatchObject({ grant: { doubt: null } });
  home.failingWrites.clear();
  await home.time.pass(SECOND);
  home.time.skip(3 * SECOND);
  await expect.poll(() => home.refreshes).toBe(2);
  await home.crash();
  await home.start();
  expect(await home.run.store.grant(id)).toMatchObject({ attempt: null, grant: { doubt: { sends: 2 } } });
});

test('a grant survives two days of an unreachable portal and is refreshed when the portal is back', async () => {
  await using home = await BrokerHarness.start();
  const id = await home.addPairedAppliance();
  await home.portal.disconnect();
  await home.time.pass(2 * 24 * HOUR);
  expect(problemOf(home, id)).toBe('portal_unreachable');
  expect(await home.run.store.grant(id)).toMatchObject({ attempt: null, grant: { doubt: null, refused: null } });
  await home.portal.reconnect();
  await home.time.pass(6 * MINUTE);
  expect(await home.whoami(await home.token(id))).toBe(200);
  expect(home.emulator.observations.refreshTokensRepeated).toBe(0);
});

test.each(['early', 'late'] as const)(
  'a forced refresh is sent at once for a grant in doubt (%s) and for a refused one',
  async (retryLostAnswer) => {
    await using home = await BrokerHarness.start({ emulator: { refreshGrace: 9 }, retryLostAnswer });
    const id = await home.addPairedAppliance();
    home.portal.fail('token', { kind: 'drop' });
    if (retryLostAnswer === 'early') home.portal.fail('token', { kind: 'drop' });
    await home.untilRefreshed();
    await home.time.pass(4 * SECOND);
    expect(problemOf(home, id)).toBe('answer_lost');
    await home.run.grants.refresh(id);
    expect(healthOf(home, id)).toEqual({ kind: 'good' });
    home.portal.fail('token', { kind: 'answer', status: 400, body: '{"error":"invalid_grant"}' });
    await home.run.grants.refresh(id);
    expect(healthOf(home, id)).toMatchObject({ kind: 'refused' });
    await home.run.grants.refresh(id);
    expect(healthOf(home, id)).toEqual({ kind: 'good' });
    expect(await home.run.store.grant(id)).toMatchObject({ grant: { refused: null, doubt: null } });
  },
);

describe('late refresh response', () => {
  async function withAnswerUnderWay(home: BrokerHarness, id: string) {
    const answer = Promise.withResolvers<void>();
    home.portal.fail('token', { kind: 'wait', until: answer.promise });
    const refreshing = home.run.grants.refresh(id);
    await expect.poll(() => home.emulator.grants()[0]?.generation).toBe(2);
    return { refreshing, answer };
  }

  test('a late refresh response for a deleted grant is discarded', async () => {
    await using home = await BrokerHarness.start();
    const id = await home.addPairedAppliance();
    const { refreshing, answer } = await withAnswerUnderWay(home, id);
    await home.run.grants.delete(id);
    answer.resolve();
    await refreshing;
    expect(home.run.grants.get(id)).toBeUndefined();
    expect(home.events.map(({ event }) => event)).toContain('refresh_superseded');
    expect(await home.run.store.grants()).toEqual([]);
    expect(await home.token(id)).toBe('not_paired');
  });

  test('a late refresh response for an appliance that was paired again is discarded', async () => {
    await using home = await BrokerHarness.start();
    const id = await home.addPairedAppliance();
    const { refreshing, answer } = await withAnswerUnderWay(home, id);
    const run = await home.run.pairings.begin(home.run.appliances.get('wallbox'));
    await expect.poll(() => run.pairing.step.kind).toBe('waiting');
    await home.login(run);
    home.time.skip(10 * SECOND);
    await expect.poll(() => run.pairing.step.kind).toBe('ended');
    const token = await home.token(id);
    answer.resolve();
    await refreshing;
    expect(await home.token(id)).toBe(token);
    expect((await home.run.store.grant(id))?.grant.accessToken.reveal()).toBe(token);
    expect(healthOf(home, id)).toEqual({ kind: 'good' });
    expect(await home.whoami(token)).toBe(200);
  });

  test('a stopping hub waits for a late refresh response and saves it', async () => {
    await using home = await BrokerHarness.start();
    const id = await home.addPairedAppliance();
    const { answer } = await withAnswerUnderWay(home, id);
    const stopping = home.stop();
    const stopped = await Promise.race([stopping.then(() => true), sleep(100, false)]);
    expect(stopped).toBe(false);
    answer.resolve();
    await stopping;
    await home.start();
    expect(home.run.grants.get(id)).toMatchObject({ grant: { generation: 2 }, health: { kind: 'good' } });
    expect(await home.whoami(await home.token(id))).toBe(200);
  });
});

test('the hub adopts a grant that another hub wrote to the same store, and does not overwrite it', async () => {
  await using home = await BrokerHarness.start();
  const id = await home.addPairedAppliance();
  const stored = await home.run.store.grant(id);
  if (stored === null) throw new Error('no grant');
  const others = { ...stored.grant, generation: 2, scope: 'RemoteControl' };
  expect(await home.run.store.replaceGrant(others)).toBe(true);
  await home.run.grants.refresh(id);
  expect(home.refreshes).toBe(0);
  expect(home.run.grants.get(id)?.grant).toMatchObject({ generation: 2, scope: 'RemoteControl' });
});

test('new tokens neither replace a grant that another hub wrote meanwhile nor are they issued', async () => {
  await using home = await BrokerHarness.start();
  const id = await home.addPairedAppliance();
  const stored = (await home.run.store.grant(id)) ?? expect.fail();
  const disk = Promise.withResolvers<void>();
  home.delayedWrites.set('replaceGrant', disk.promise);
  const refreshing = home.run.grants.refresh(id);
  await expect.poll(() => home.refreshes).toBe(1);
  expect(await home.run.store.replaceGrant({ ...stored.grant, generation: 2, scope: 'RemoteControl' })).toBe(true);
  disk.resolve();
  await refreshing;
  expect(healthOf(home, id)).toEqual({ kind: 'good' });
  expect(home.run.grants.get(id)?.grant).toMatchObject({ generation: 2, scope: 'RemoteControl' });
  expect(await home.run.store.grant(id)).toMatchObject({ grant: { generation: 2, scope: 'RemoteControl' } });
});

test('the refusal of a refresh token that is no longer the stored one does not affect the grant', async () => {
  await using home = await BrokerHarness.start();
  const id = await home.addPairedAppliance();
  const stored = (await home.run.store.grant(id)) ?? expect.fail();
  const disk = Promise.withResolvers<void>();
  home.delayedWrites.set('endAttempt', disk.promise);
  home.portal.fail('token', { kind: 'answer', status: 400, body: '{"error":"invalid_grant"}' });
  const refreshing = home.run.grants.refresh(id);
  await expect.poll(() => home.refreshes).toBe(1);
  expect(await home.run.store.replaceGrant({ ...stored.grant, generation: 2, scope: 'RemoteControl' })).toBe(true);
  disk.resolve();
  await refreshing;
  expect(healthOf(home, id)).toEqual({ kind: 'good' });
  expect(home.run.grants.get(id)?.grant).toMatchObject({ generation: 2, refused: null });
  expect(await home.run.store.grant(id)).toMatchObject({ grant: { generation: 2, refused: null } });
  expect(home.events.map(({ event }) => event)).not.toContain('pairing_needed');
});

describe('grants while the store is unwritable', () => {
  test('new tokens are served from memory while the store is unwritable, and saved when it is writable again', async () => {
    await using home = await BrokerHarness.start();
    const id = await home.addPairedAppliance();
    home.failingWrites.add('replaceGrant');
    await home.untilRefreshed();
    const token = await home.token(id);
    expect(await home.whoami(token)).toBe(200);
    expect(problemOf(home, id)).toBe('store_unwritable');
    expect(await home.run.store.grant(id)).toMatchObject({ grant: { generation: 1 } });
    await home.time.pass(10 * MINUTE);
    expect(home.refreshes).toBe(1);
    home.failingWrites.clear();
    await home.time.pass(5 * MINUTE);
    expect(healthOf(home, id)).toEqual({ kind: 'good' });
    const kept = await home.run.store.grant(id);
    expect(kept).toMatchObject({ attempt: null, grant: { generation: 2 } });
    expect(kept?.grant.accessToken.reveal()).toBe(token);
    await home.untilRefreshed();
    expect(home.emulator.observations.refreshTokensRepeated).toBe(0);
  });

  test('a refresh that cannot be written ahead is not sent, and the current access token is issued until it expires', async () => {
    await using home = await BrokerHarness.start();
    const id = await home.addPairedAppliance();
    const token = await home.token(id);
    home.failingWrites.add('beginAttempt');
    await home.time.pass(59 * MINUTE);
    expect(home.refreshes).toBe(0);
    expect(problemOf(home, id)).toBe('store_unwritable');
    expect(await home.token(id)).toBe(token);
    home.failingWrites.clear();
    await home.time.pass(5 * MINUTE);
    expect(home.refreshes).toBe(1);
    expect(healthOf(home, id)).toEqual({ kind: 'good' });
  });

  test('a lost answer is known while the store is unwritable, and still after the next start', async () => {
    await using home = await BrokerHarness.start({ retryLostAnswer: 'late' });
    const id = await home.addPairedAppliance();
    home.failingWrites.add('endAttempt');
    home.portal.fail('token', { kind: 'commit then drop' });
    await home.untilRefreshed();
    expect(problemOf(home, id)).toBe('answer_lost');
    await home.stop();
    home.failingWrites.clear();
    await home.start();
    expect(problemOf(home, id)).toBe('answer_lost');
    expect(await home.run.store.grant(id)).toMatchObject({ attempt: null, grant: { doubt: { sends: 1 } } });
  });

  test('deleting a grant fails and keeps it while the store is unwritable', async () => {
    await using home = await BrokerHarness.start();
    const id = await home.addPairedAppliance();
    home.failingWrites.add('forgetGrant');
    await expect(home.run.grants.delete(id)).rejects.toMatchObject({ code: 'store_unwritable' });
    expect(await home.whoami(await home.token(id))).toBe(200);
  });

  test('a deleted grant that was only in memory does not return after a restart', async () => {
    await using home = await BrokerHarness.start();
    const id = await home.addPairedAppliance();
    home.failingWrites.add('replaceGrant');
    await home.untilRefreshed();
    home.failingWrites.clear();
    await home.run.grants.delete(id);
    expect(await home.run.store.grants()).toEqual([]);
    await home.stop();
    await home.start();
    expect(await home.token(id)).toBe('not_paired');
  });
});

test('an appliance keeps its grant when its portal is no longer configured', async () => {
  await using home = await BrokerHarness.start();
  const id = await home.addPairedAppliance();
  const token = await home.token(id);
  home.configured = false;
  await home.time.pass(50 * MINUTE);
  expect(problemOf(home, id)).toBe('misconfigured');
  expect(home.refreshes).toBe(0);
  expect(await home.token(id)).toBe(token);
  expect(await home.run.store.grant(id)).toMatchObject({ attempt: null, grant: { doubt: null, refused: null } });
  await home.stop();
  await home.start();
  expect(problemOf(home, id)).toBe('misconfigured');
});
