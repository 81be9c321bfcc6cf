import { describe, expect, test } from 'vitest';
import { BrokerHarness } from './broker-harness.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;

/** A home with a grant, and the token that its appliance holds. */
async function paired(home: BrokerHarness) {
  const id = await home.addPairedAppliance();
  const token = await home.token(id);
  return { id, token };
}

describe('rejected access token', () => {
  test('a rejected access token is replaced by one refresh, for which all token requests wait', async () => {
    await using home = await BrokerHarness.start();
    const { id, token } = await paired(home);
    const { grants, tokenIssuer } = home.run;
    const answer = Promise.withResolvers<void>();
    home.portal.fail('token', { kind: 'wait', until: answer.promise });
    const said = Array.from({ length: 50 }, () => grants.reportRejectedToken(id, token));
    const asked = Array.from({ length: 50 }, () => tokenIssuer.issue(id, null));
    await Promise.all(said);
    asked.push(...Array.from({ length: 50 }, () => tokenIssuer.issue(id, null)));
    answer.resolve();
    const given = await Promise.all(asked);
    const tokens = new Set(given.map((one) => (one.kind === 'token' ? one.accessToken.reveal() : one.kind)));
    expect(tokens.size).toBe(1);
    expect(tokens).not.toContain(token);
    expect(home.refreshes).toBe(1);
    expect(await home.whoami(await home.token(id))).toBe(200);
    // The one before is nothing that the hub holds any more.
    await grants.reportRejectedToken(id, token);
    await home.time.pass(MINUTE);
    expect(home.refreshes).toBe(1);
  });

  test('the log reports a rejected access token, and the refresh that replaces it, each time', async () => {
    await using home = await BrokerHarness.start();
    const { id } = await paired(home);
    await home.run.grants.refresh(id);
    for (const minute of [1, 2]) {
      await home.time.pass(2 * MINUTE);
      await home.run.grants.reportRejectedToken(id, await home.token(id));
      await home.run.grants.refresh(id);
      const logged = home.events.filter(({ level }) => level !== 'debug').map(({ event }) => event);
      expect(logged.filter((event) => event === 'access_token_rejected')).toHaveLength(minute);
      expect(logged.filter((event) => event === 'token_refreshed')).toHaveLength(1 + minute);
    }
  });

  test.each(['', 'nonsense', 'of another appliance', 'the refresh token'])(
    'the hub ignores the rejection of any token but the current access token (%s)',
    async (which) => {
      await using home = await BrokerHarness.start();
      const { id, token } = await paired(home);
      const others = await home.token(await home.addPairedAppliance('heater'));
      const refreshToken = home.run.grants.get(id)?.grant.refreshToken.reveal() ?? '';
      const sent = { 'of another appliance': others, 'the refresh token': refreshToken }[which] ?? which;
      await home.run.grants.reportRejectedToken(id, sent);
      await home.run.grants.reportRejectedToken('nobody', token);
      await home.time.pass(MINUTE);
      expect(await home.token(id)).toBe(token);
      expect(home.refreshes).toBe(0);
    },
  );

  test('a rejected access token is not issued again while the portal is unreachable, also after restarts', async () => {
    await using home = await BrokerHarness.start();
    const { id, token } = await paired(home);
    await home.portal.disconnect();
    await home.run.grants.reportRejectedToken(id, token);
    const unreachable = { kind: 'unavailable', reason: 'portal_unreachable', unusableTokenReason: 'rejected' };
    expect(await home.run.tokenIssuer.issue(id, null)).toMatchObject(unreachable);
    await home.crash();
    await home.start();
    expect(await home.token(id)).toBe('unavailable');
    await home.stop();
    home.time.reboot(home.time.wall);
    await home.start();
    expect(await home.token(id)).toBe('unavailable');
    await home.portal.reconnect();
    await home.time.pass(MINUTE);
    expect(home.refreshes).toBe(1);
    expect(await home.whoami(await home.token(id))).toBe(200);
  });

  test.each([
    ['beginAttempt', 'store_unwritable'],
    [{ kind: 'answer', status: 429 }, 'portal_deferred'],
    [{ kind: 'answer', status: 400, body: '{"error":"invalid_scope"}' }, 'portal_rejected'],
    [{ kind: 'drop' }, 'answer_lost'],
  ] as const)(
    'a token request names the rejected token and %o as the cause of its failure, also after a restart',
    async (fault, why) => {
      await using home = await BrokerHarness.start();
      const { id, token } = await paired(home);
      for (const again of [false, true]) {
        if (typeof fault === 'string') home.failingWrites.add(fault);
        else home.portal.fail('token', ...Array(9).fill(fault));
        if (!again) await home.run.grants.reportRejectedToken(id, token);
        await home.time.pass(MINUTE);
        expect(await home.run.tokenIssuer.issue(id, null)).toMatchObject({
          kind: 'unavailable',
          reason: why,
          unusableTokenReason: 'rejected',
        });
        await home.stop();
        await home.start();
      }
    },
  );

  test('the hub replaces rejected access tokens at most once a minute, even if an appliance rejects each one', async () => {
    await using home = await BrokerHarness.start();
    const { id, token } = await paired(home);
    const { grants, tokenIssuer } = home.run;
    await grants.reportRejectedToken(id, token);
    let last = await home.token(id);
    expect(home.refreshes).toBe(1);
    for (let minute = 1; minute < 5; minute += 1) {
      await home.time.pass(SECOND);
      await grants.reportRejectedToken(id, last);
      const none = await tokenIssuer.issue(id, null);
      expect(none).toMatchObject({ kind: 'unavailable', reason: 'no_answer_yet', unusableTokenReason: 'rejected' });
      expect(none.kind === 'unavailable' && none.retryAfter).toBe(59);
      for (let s = 0; s < 59; s += 1) {
        expect(await home.token(id)).toBe('unavailable');
        expect(home.refreshes).toBe(minute);
        await home.time.pass(SECOND);
      }
      // Nobody has to ask.
      expect(home.refreshes).toBe(minute + 1);
      const next = await home.token(id);
      expect(next).not.toBe(last);
      last = next;
    }
    expect(await home.whoami(last)).toBe(200);
    expect(home.emulator.observations).toMatchObject({ overlappingRefreshes: 0, refreshTokensRepeated: 0 });
  });

  test('a grant returns to its usual refresh times once its rejected access token is replaced', async () => {
    await using home = await BrokerHarness.start();
    const { id, token } = await paired(home);
    await home.time.pass(10 * MINUTE);
    await home.run.grants.reportRejectedToken(id, token);
    await home.time.settle();
    expect(home.refreshes).toBe(1);
    await home.time.pass(47 * MINUTE);
    expect(home.refreshes).toBe(1);
    await home.time.pass(2 * MINUTE);
    expect(home.refreshes).toBe(2);
  });

  test('an access token stays rejected when the portal issues the same one again, and is refreshed once a minute', async () => {
    await using home = await BrokerHarness.start();
    const { id, token } = await paired(home);
    const same = (body: string) => JSON.stringify({ ...JSON.parse(body), access_token: token });
    home.portal.fail('token', { kind: 'alter', with: same }, { kind: 'alter', with: same });
    await home.run.grants.reportRejectedToken(id, token);
    expect(await home.token(id)).toBe('unavailable');
    expect(await home.run.store.grant(id)).toMatchObject({
      grant: { generation: 2, accessTokenRejectedAt: { boot: 'boot-1' } },
    });
    await home.time.pass(MINUTE + SECOND);
    expect(home.refreshes).toBe(2);
    expect(await home.token(id)).toBe('unavailable');
    await home.time.pass(MINUTE);
    expect(home.refreshes).toBe(3);
    expect(await home.whoami(await home.token(id))).toBe(200);
  });
});

describe('refresh in progress when its access token is rejected', () => {
  async function withAnswerUnderWay(home: BrokerHarness, id: string) {
    const answer = Promise.withResolvers<void>();
    home.portal.fail('token', { kind: 'wait', until: answer.promise });
    const refreshing = home.run.grants.refresh(id);
    await expect.poll(() => home.emulator.grants()[0]?.generation).toBe(2);
    return { answer, refreshing };
  }

  test('a refresh in progress replaces the rejected access token, and no other refresh is sent', async () => {
    await using home = await BrokerHarness.start();
    const { id, token } = await paired(home);
    const { answer, refreshing } = await withAnswerUnderWay(home, id);
    await home.run.grants.reportRejectedToken(id, token);
    const asked = home.token(id);
    answer.resolve();
    await refreshing;
    const next = await asked;
    expect(next).not.toBe(token);
    expect(await home.whoami(next)).toBe(200);
    expect(await home.run.store.grant(id)).toMatchObject({ grant: { generation: 2, accessTokenRejectedAt: null } });
    await home.time.pass(2 * MINUTE);
    expect(home.refreshes).toBe(1);
  });

  test('a refresh in progress that the portal defers leaves the access token rejected', async () => {
    await using home = await BrokerHarness.start();
    const { id, token } = await paired(home);
    const answer = Promise.withResolvers<void>();
    home.delayedWrites.set('endAttempt', answer.promise);
    home.portal.fail('token', { kind: 'answer', status: 503, headers: { 'retry-after': '120' } });
    const refreshing = home.run.grants.refresh(id);
    await expect.poll(() => home.refreshes).toBe(1);
    await home.run.grants.reportRejectedToken(id, token);
    answer.resolve();
    await refreshing;
    expect(await home.token(id)).toBe('unavailable');
    expect(await home.run.store.grant(id)).toMatchObject({ grant: { accessTokenRejectedAt: { boot: 'boot-1' } } });
    // The portal asked to be left alone for two minutes.
    expect(home.refreshes).toBe(1);
    await home.time.pass(6 * MINUTE);
    expect(home.refreshes).toBe(2);
    expect(await home.whoami(await home.token(id))).toBe(200);
  });

  test('a rejection while the new access token is being saved does not affect the new one', async () => {
    await using home = await BrokerHarness.start();
    const { id, token } = await paired(home);
    const disk = Promise.withResolvers<void>();
    home.delayedWrites.set('replaceGrant', disk.promise);
    const refreshing = home.run.grants.refresh(id);
    await expect.poll(() => home.emulator.grants()[0]?.generation).toBe(2);
    await home.run.grants.reportRejectedToken(id, token);
    disk.resolve();
    await refreshing;
    expect(await home.whoami(await home.token(id))).toBe(200);
    expect(home.refreshes).toBe(1);
  });
});

test.each(['early', 'late'] as const)(
  'a grant in doubt (%s) is refreshed at once when its access token is rejected',
  async (retryLostAnswer) => {
    await using home = await BrokerHarness.start({ retryLostAnswer });
    const { id, token } = await paired(home);
    home.portal.fail('token', { kind: 'drop' });
    if (retryLostAnswer === 'early') home.portal.fail('token', { kind: 'drop' });
    await home.time.pass(50 * MINUTE);
    const before = home.refreshes;
    expect(before).toBe(retryLostAnswer === 'early' ? 2 : 1);
    expect(await home.token(id)).toBe(token);
    await home.run.grants.reportRejectedToken(id, token);
    expect(await home.whoami(await home.token(id))).toBe(200);
    expect(home.refreshes).toBe(before + 1);
    expect(home.run.grants.get(id)?.health).toEqual({ kind: 'good' });
  },
);

test('after a final refusal, a rejected access token is not issued, and the appliance needs pairing at once', async () => {
  await using home = await BrokerHarness.start();
  const { id, token } = await paired(home);
  home.portal.fail('token', { kind: 'answer', status: 400, body: '{"error":"invalid_grant"}' });
  await home.run.grants.refresh(id);
  expect(await home.token(id)).toBe(token);
  await home.run.grants.reportRejectedToken(id, token);
  expect(await home.token(id)).toBe('needs_pairing');
  expect(home.refreshes).toBe(1);
  await home.pairAgain('wallbox');
  expect(await home.whoami(await home.token(id))).toBe(200);
});

describe('rejected access token while the store is unwritable', () => {
  test('the hub logs a rejection that it cannot save, stops issuing the token, and saves it with the next attempt', async () => {
    await using home = await BrokerHarness.start();
    const { id, token } = await paired(home);
    for (const name of ['markTokenRejected', 'beginAttempt'] as const) home.failingWrites.add(name);
    await home.run.grants.reportRejectedToken(id, token);
    expect(await home.token(id)).toBe('unavailable');
    expect(home.events.map(({ event }) => event)).toEqual(
      expect.arrayContaining(['access_token_rejected', 'store_unwritable']),
    );
    expect(home.refreshes).toBe(0);
    home.failingWrites.clear();
    home.portal.fail('token', { kind: 'answer', status: 503 });
    await home.time.pass(3 * SECOND);
    expect(home.refreshes).toBeGreaterThanOrEqual(1);
    expect(await home.run.store.grant(id)).not.toMatchObject({ grant: { generation: 1, accessTokenRejectedAt: null } });
    await home.time.pass(MINUTE);
    expect(await home.whoami(await home.token(id))).toBe(200);
  });

  test('the rejection of an access token that is only in memory is saved together with its grant', async () => {
    await using home = await BrokerHarness.start();
    const { id } = await paired(home);
    home.failingWrites.add('replaceGrant');
    await home.run.grants.refresh(id);
    const token = await home.token(id);
    await home.run.grants.reportRejectedToken(id, token);
    expect(await home.token(id)).toBe('unavailable');
    home.failingWrites.clear();
    await home.portal.disconnect();
    await home.stop();
    await home.start();
    expect(home.run.grants.get(id)?.grant).toMatchObject({ generation: 2 });
    expect(await home.token(id)).toBe('unavailable');
    await home.portal.reconnect();
    await home.time.pass(MINUTE);
    expect(await home.whoami(await home.token(id))).toBe(200);
  });
});
