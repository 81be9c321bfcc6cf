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

describe('a grant that is at work', () => {
  test('is refreshed at 80 % of the life of its token, again and again, and no token is used twice', async () => {
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

  test('is refreshed when the machine wakes from sleep', async () => {
    await using home = await BrokerHarness.start();
    const id = await home.addPairedAppliance();
    home.time.suspend(5 * HOUR);
    await home.time.pass(MINUTE);
    expect(home.refreshes).toBe(1);
    expect(await home.whoami(await home.token(id))).toBe(200);
  });

  test('does not care for jumps of the wall clock', async () => {
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

  test('goes on after a restart where it was', async () => {
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
    'is refreshed after a boot before it is handed out, with the wall clock off by %d ms',
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

  test('is refreshed within half a lifetime after a boot, where no appliance asks', async () => {
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

  test('serves on after a boot as soon as the refresh of another one has told the time', async () => {
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

  test('of twelve that come due while the portal answers nobody eight are refreshed, and one that an appliance asks for does not wait for them', async () => {
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

  test('has the age of its token counted from when it was asked for, and not from when a slow answer came', async () => {
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

  test('keeps its refresh token where the answer brings none', async () => {
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

describe('when the answer to a refresh is lost', () => {
  test('and the portal has a grace time: the old token is tried once more within seconds, and all is well', async () => {
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
    'twice (%s): then not again until shortly before the token at hand ends',
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

  test('with retry_lost_answer late the old token rests until the token at hand has ended, restarts or not', async () => {
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

  test('with retry_lost_answer late it rests after a boot, too, as soon as the true time is known', async () => {
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

  test('by a power cut: the next run knows of the attempt, and is in doubt', async () => {
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

describe('a person is told once', () => {
  const told = (home: BrokerHarness, event: string) => home.events.filter((one) => one.event === event);

  test('that an answer was lost, however often that happens again and the hub is started', async () => {
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

  test('that a person must log in, and which it was', async () => {
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

test('the attempt is written ahead with the token it was for: of another one it says nothing', async () => {
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

test('a send that fails in an unheard-of way leaves a doubt: nobody knows what the portal has got', async () => {
  await using home = await BrokerHarness.start({ retryLostAnswer: 'late' });
  const id = await home.addPairedAppliance();
  home.portalThrows = true;
  await home.run.grants.refresh(id);
  home.portalThrows = false;
  expect(problemOf(home, id)).toBe('answer_lost');
  await home.time.pass(30 * MINUTE);
  expect(home.refreshes).toBe(0);
});

test('a doubt that could not be written down is with the next attempt, so that no crash makes it one send less', async () => {
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

test('out of reach nothing is lost: it is refreshed when the portal is back', async () => {
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
  'a person may have it refreshed at once, in doubt (%s) and when refused',
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

describe('an answer that comes late', () => {
  async function withAnswerUnderWay(home: BrokerHarness, id: string) {
    const answer = Promise.withResolvers<void>();
    home.portal.fail('token', { kind: 'wait', until: answer.promise });
    const refreshing = home.run.grants.refresh(id);
    await expect.poll(() => home.emulator.grants()[0]?.generation).toBe(2);
    return { refreshing, answer };
  }

  test('for a grant that was forgotten is thrown away', async () => {
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

  test('for a grant that was paired anew is thrown away', async () => {
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

  test('is waited for when the hub is stopped, and saved', async () => {
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

test('another hub on the same store is noticed: what it wrote is taken, and what this one got is not put over it', async () => {
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

test('tokens that come after another hub has written the grant are not put over what it wrote, nor served', async () => {
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

test('a refusal of a token that is no longer the one stored condemns nothing', async () => {
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

describe('while the store can not be written', () => {
  test('the successor is served from memory, and saved as soon as that goes', async () => {
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

  test('a refresh that could not be written ahead is not sent, and the token at hand serves to its end', async () => {
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

  test('a doubt is known all the same, now and after the next start', async () => {
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

  test('a grant is kept when it should be forgotten, and that is said', async () => {
    await using home = await BrokerHarness.start();
    const id = await home.addPairedAppliance();
    home.failingWrites.add('forgetGrant');
    await expect(home.run.grants.delete(id)).rejects.toMatchObject({ code: 'store_unwritable' });
    expect(await home.whoami(await home.token(id))).toBe(200);
  });

  test('a grant that was only in memory does not come back after it was forgotten', async () => {
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

test('an appliance whose portal is no longer configured keeps its grant', async () => {
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
