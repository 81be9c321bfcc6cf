import { describe, expect, test } from 'vitest';
import { Secret } from '../../src/core/secret.ts';
import { MINUTE, SECOND } from '../core/samples.ts';
import { BrokerHarness } from './broker-harness.ts';
import { administrationOf } from './broker-services.ts';

/** A broker with a paired appliance. @returns also the appliance's id, and the access token that it has */
async function startPaired() {
  const paired = await BrokerHarness.startPaired();
  return { ...paired, token: await paired.harness.token(paired.id) };
}

describe('rejected access token', () => {
  test('a rejected access token is replaced by one refresh, for which all token requests wait', async () => {
    const { harness, id, token } = await startPaired();
    const { grants, tokenIssuer } = harness.run;
    const response = harness.portal.hold('token');
    const reports = Array.from({ length: 50 }, () => grants.reportRejectedToken(id, token));
    const requests = Array.from({ length: 50 }, () => tokenIssuer.issue(id, null));
    await Promise.all(reports);
    requests.push(...Array.from({ length: 50 }, () => tokenIssuer.issue(id, null)));
    response.resolve();
    const results = await Promise.all(requests);
    const tokens = new Set(results.map((one) => (one.kind === 'token' ? one.accessToken.reveal() : one.kind)));
    expect(tokens.size).toBe(1);
    expect(tokens).not.toContain(token);
    expect(harness.refreshes).toBe(1);
    expect(await harness.whoami(await harness.token(id))).toBe(200);
    // The hub no longer holds the previous token.
    await grants.reportRejectedToken(id, token);
    await harness.time.pass(MINUTE);
    expect(harness.refreshes).toBe(1);
  });

  test('a command that names the rejected token gets another one, and none but the current one is replaced', async () => {
    const { harness, token } = await startPaired();
    const administration = administrationOf(harness);
    const next = async (rejected: string) =>
      (await administration.token('wallbox', { minTtl: 0, rejected: new Secret(rejected) })).accessToken.reveal();
    const other = await next(token);
    expect(other).not.toBe(token);
    expect(await next(token)).toBe(other);
    expect(harness.refreshes).toBe(1);
  });

  test.each(['', 'nonsense', 'of another appliance', 'the refresh token'])(
    'the hub ignores the rejection of any token but the current access token (%s)',
    async (which) => {
      const { harness, id, token } = await startPaired();
      const others = await harness.token(await harness.addPairedAppliance('heater'));
      const refreshToken = harness.run.grants.get(id)?.grant.refreshToken?.reveal() ?? '';
      const sent = { 'of another appliance': others, 'the refresh token': refreshToken }[which] ?? which;
      await harness.run.grants.reportRejectedToken(id, sent);
      await harness.run.grants.reportRejectedToken('nobody', token);
      await harness.time.pass(MINUTE);
      expect(await harness.token(id)).toBe(token);
      expect(harness.refreshes).toBe(0);
    },
  );

  test('a rejected access token is not issued again while the portal is unreachable, also after restarts', async () => {
    const { harness, id, token } = await startPaired();
    await harness.portal.disconnect();
    await harness.run.grants.reportRejectedToken(id, token);
    const unreachable = { kind: 'unavailable', reason: 'portal_unreachable', unusableTokenReason: 'rejected' };
    expect(await harness.run.tokenIssuer.issue(id, null)).toMatchObject(unreachable);
    await harness.crash();
    await harness.start();
    expect(await harness.token(id)).toBe('unavailable');
    await harness.reboot();
    expect(await harness.token(id)).toBe('unavailable');
    await harness.portal.reconnect();
    await harness.time.pass(MINUTE);
    expect(harness.refreshes).toBe(1);
    expect(await harness.whoami(await harness.token(id))).toBe(200);
  });

  test.each([
    ['grants.beginAttempt', 'store_unwritable'],
    [{ kind: 'answer', status: 429 }, 'portal_deferred'],
    [{ kind: 'answer', status: 400, body: '{"error":"invalid_scope"}' }, 'portal_rejected'],
    [{ kind: 'drop' }, 'answer_lost'],
  ] as const)(
    'a token request names the rejected token and %o as the cause of its failure, also after a restart',
    async (fault, reason) => {
      const { harness, id, token } = await startPaired();
      for (const again of [false, true]) {
        if (typeof fault === 'string') harness.failingWrites.add(fault);
        else harness.portal.fail('token', ...Array(9).fill(fault));
        if (!again) await harness.run.grants.reportRejectedToken(id, token);
        await harness.time.pass(MINUTE);
        expect(await harness.run.tokenIssuer.issue(id, null)).toMatchObject({
          kind: 'unavailable',
          reason: reason,
          unusableTokenReason: 'rejected',
        });
        await harness.restart();
      }
    },
  );

  test('the hub replaces rejected access tokens at most once a minute, even if an appliance rejects each one', async () => {
    const { harness, id, token } = await startPaired();
    const { grants, tokenIssuer } = harness.run;
    await grants.reportRejectedToken(id, token);
    let last = await harness.token(id);
    expect(harness.refreshes).toBe(1);
    for (let minute = 1; minute < 5; minute += 1) {
      await harness.time.pass(SECOND);
      await grants.reportRejectedToken(id, last);
      const none = await tokenIssuer.issue(id, null);
      expect(none).toMatchObject({ kind: 'unavailable', reason: 'replaced_recently', unusableTokenReason: 'rejected' });
      expect(none.kind === 'unavailable' && none.retryAfter).toBe(59);
      expect(harness.statusOf('wallbox').problem).toMatchObject({ condition: 'access_token_rejected' });
      expect(harness.events.findLast(({ event }) => event === 'access_token_rejected')?.fields).toMatchObject({
        retry_in: 59,
      });
      for (let s = 0; s < 59; s += 1) {
        expect(await harness.token(id)).toBe('unavailable');
        expect(harness.refreshes).toBe(minute);
        await harness.time.pass(SECOND);
      }
      // The hub refreshes without a request.
      expect(harness.refreshes).toBe(minute + 1);
      const next = await harness.token(id);
      expect(next).not.toBe(last);
      last = next;
    }
    expect(await harness.whoami(last)).toBe(200);
    expect(harness.emulator.observations).toMatchObject({ overlappingRefreshes: 0, refreshTokensRepeated: 0 });
  });

  test('an access token stays rejected when the portal issues the same one again, and is refreshed once a minute', async () => {
    const { harness, id, token } = await startPaired();
    const same = (body: string) => JSON.stringify({ ...JSON.parse(body), access_token: token });
    harness.portal.fail('token', { kind: 'alter', with: same }, { kind: 'alter', with: same });
    await harness.run.grants.reportRejectedToken(id, token);
    expect(await harness.token(id)).toBe('unavailable');
    expect(await harness.run.store.grants.get(id)).toMatchObject({
      grant: { generation: 2, accessTokenRejectedAt: { boot: 'boot-1' } },
    });
    await harness.time.pass(MINUTE + SECOND);
    expect(harness.refreshes).toBe(2);
    expect(await harness.token(id)).toBe('unavailable');
    await harness.time.pass(MINUTE);
    expect(harness.refreshes).toBe(3);
    expect(await harness.whoami(await harness.token(id))).toBe(200);
  });
});

describe('refresh in progress when its access token is rejected', () => {
  async function startSlowRefresh(harness: BrokerHarness, id: string) {
    const response = harness.portal.hold('token');
    const refreshing = harness.run.grants.refresh(id);
    await expect.poll(() => harness.emulator.grants()[0]?.generation).toBe(2);
    return { response, refreshing };
  }

  test('a refresh in progress replaces the rejected access token, and no other refresh is sent', async () => {
    const { harness, id, token } = await startPaired();
    const { response, refreshing } = await startSlowRefresh(harness, id);
    await harness.run.grants.reportRejectedToken(id, token);
    const request = harness.token(id);
    response.resolve();
    await refreshing;
    const next = await request;
    expect(next).not.toBe(token);
    expect(await harness.whoami(next)).toBe(200);
    expect(await harness.run.store.grants.get(id)).toMatchObject({
      grant: { generation: 2, accessTokenRejectedAt: null },
    });
    await harness.time.pass(2 * MINUTE);
    expect(harness.refreshes).toBe(1);
  });

  test('a refresh in progress that the portal defers leaves the access token rejected', async () => {
    const { harness, id, token } = await startPaired();
    const response = harness.holdWrites('grants.endAttempt');
    harness.portal.fail('token', { kind: 'answer', status: 503, headers: { 'retry-after': '120' } });
    const refreshing = harness.run.grants.refresh(id);
    await expect.poll(() => harness.refreshes).toBe(1);
    await harness.run.grants.reportRejectedToken(id, token);
    response.resolve();
    await refreshing;
    expect(await harness.token(id)).toBe('unavailable');
    expect(await harness.run.store.grants.get(id)).toMatchObject({
      grant: { accessTokenRejectedAt: { boot: 'boot-1' } },
    });
    // The portal sent a Retry-After of two minutes.
    expect(harness.refreshes).toBe(1);
    await harness.time.pass(6 * MINUTE);
    expect(harness.refreshes).toBe(2);
    expect(await harness.whoami(await harness.token(id))).toBe(200);
  });

  test('a rejection while the new access token is being saved does not affect the new one', async () => {
    const { harness, id, token } = await startPaired();
    const disk = harness.holdWrites('grants.replace');
    const refreshing = harness.run.grants.refresh(id);
    await expect.poll(() => harness.emulator.grants()[0]?.generation).toBe(2);
    await harness.run.grants.reportRejectedToken(id, token);
    disk.resolve();
    await refreshing;
    expect(await harness.whoami(await harness.token(id))).toBe(200);
    expect(harness.refreshes).toBe(1);
  });

  test('a rejection while the very same access token is being saved again is saved with the next attempt', async () => {
    const { harness, id, token } = await startPaired();
    const disk = harness.holdWrites('grants.replace');
    const same = (body: string) => JSON.stringify({ ...JSON.parse(body), access_token: token });
    harness.portal.fail('token', { kind: 'alter', with: same }, ...Array(9).fill({ kind: 'answer', status: 503 }));
    const refreshing = harness.run.grants.refresh(id);
    await expect.poll(() => harness.emulator.grants()[0]?.generation).toBe(2);
    await harness.run.grants.reportRejectedToken(id, token);
    disk.resolve();
    await refreshing;
    await harness.time.pass(2 * MINUTE);
    expect(await harness.token(id)).toBe('unavailable');
    expect(await harness.run.store.grants.get(id)).toMatchObject({
      grant: { generation: 2, accessTokenRejectedAt: { boot: 'boot-1' } },
    });
  });
});

test('after a final refusal, a rejected access token is not issued, and the appliance needs pairing at once', async () => {
  const { harness, id, token } = await startPaired();
  harness.portal.fail('token', { kind: 'answer', status: 400, body: '{"error":"invalid_grant"}' });
  await harness.run.grants.refresh(id);
  expect(await harness.token(id)).toBe(token);
  await harness.run.grants.reportRejectedToken(id, token);
  expect(await harness.token(id)).toBe('needs_pairing');
  expect(harness.refreshes).toBe(1);
  await harness.pairAgain('wallbox');
  expect(await harness.whoami(await harness.token(id))).toBe(200);
});
