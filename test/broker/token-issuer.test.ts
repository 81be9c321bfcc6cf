import { statSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { TokenResult } from '../../src/core/lan-service.ts';
import { MINUTE } from '../core/samples.ts';
import { BrokerHarness } from './broker-harness.ts';
import { requestToken } from './broker-services.ts';

test('a hundred simultaneous token requests get one token and cause one refresh', async () => {
  const { harness, id } = await BrokerHarness.startPaired();
  const { tokenIssuer, grants } = await harness.reboot();
  const results = await Promise.all(Array.from({ length: 100 }, () => tokenIssuer.issue(id, 'Monitoring')));
  await Promise.all(Array.from({ length: 100 }, () => grants.refresh(id)));
  expect(new Set(results.map((one) => (one.kind === 'token' ? one.accessToken.reveal() : one.kind))).size).toBe(1);
  expect(results[0]).toMatchObject({ kind: 'token', scope: 'Monitoring' });
  // The token requests share the first refresh, the forced refreshes share the second.
  expect(harness.refreshes).toBe(2);
  expect(harness.emulator.observations).toMatchObject({ overlappingRefreshes: 0, refreshTokensRepeated: 0 });
});

test('an access token is saved to disk before it is issued', async () => {
  const { harness, id } = await BrokerHarness.startPaired();
  const first = await harness.token(id);
  const disk = harness.holdWrites('grants.replace');
  const refreshing = harness.run.grants.refresh(id);
  await expect.poll(() => harness.emulator.grants()[0]?.generation).toBe(2);
  expect(await harness.token(id)).toBe(first);
  expect(await harness.run.store.grants.get(id)).toMatchObject({
    grant: { generation: 1 },
    attempt: { at: { boot: 'boot-1' } },
  });
  disk.resolve();
  await refreshing;
  const second = await harness.token(id);
  expect(second).not.toBe(first);
  const kept = await harness.run.store.grants.get(id);
  expect(kept).toMatchObject({ attempt: null });
  expect(kept?.grant.accessToken.reveal()).toBe(second);
  expect(await harness.whoami(second)).toBe(200);
});

test('issuing the current access token writes nothing to disk', async () => {
  const { harness, id } = await BrokerHarness.startPaired();
  const files = () =>
    ['latchkey.db', 'latchkey.db-wal'].map((name) => {
      const { size, mtimeNs } = statSync(join(harness.folder, name), { bigint: true });
      return `${name} ${size} ${mtimeNs}`;
    });
  const before = files();
  for (let i = 0; i < 200; i += 1)
    expect(await harness.run.tokenIssuer.issue(id, null)).toMatchObject({ kind: 'token' });
  await harness.time.pass(10 * MINUTE);
  expect(files()).toEqual(before);
  expect(harness.refreshes).toBe(0);
});

test('an issued token states its remaining lifetime in whole seconds', async () => {
  const { harness, id } = await BrokerHarness.startPaired();
  await harness.run.grants.refresh(id);
  expect(await harness.run.tokenIssuer.issue(id, null)).toMatchObject({ expiresIn: 3600 });
  harness.time.suspend(1);
  expect(await harness.run.tokenIssuer.issue(id, null)).toMatchObject({ expiresIn: 3599 });
  await harness.time.pass(10 * MINUTE);
  expect(await harness.run.tokenIssuer.issue(id, null)).toMatchObject({ expiresIn: 2999 });
});

test("a token request beyond the grant's scope is refused with that, and a narrower one gets the token with it (RFC 6749, 3.3)", async () => {
  const harness = await BrokerHarness.start();
  const id = await harness.addPairedAppliance('wallbox', 'Monitoring RemoteControl');
  const { tokenIssuer } = harness.run;
  const has = 'Monitoring RemoteControl';
  expect(await tokenIssuer.issue(id, `${has} More`)).toEqual({ kind: 'other_scope', scope: has });
  for (const scope of ['RemoteControl Monitoring', 'Monitoring'])
    expect(await tokenIssuer.issue(id, scope)).toMatchObject({ kind: 'token', scope: has });
});

test('a scope that the refresh has changed is checked before the token is issued', async () => {
  const harness = await BrokerHarness.start();
  const id = await harness.addPairedAppliance('wallbox', 'Monitoring');
  harness.time.suspend(59.5 * MINUTE);
  harness.portal.fail('token', { kind: 'alter', with: (body) => body.replace('"Monitoring"', '"RegisterDevice"') });
  expect(await harness.run.tokenIssuer.issue(id, 'Monitoring')).toEqual({
    kind: 'other_scope',
    scope: 'RegisterDevice',
  });
});

test('the current access token is issued until it expires while the portal is unreachable, then Retry-After is sent', async () => {
  const { harness, id } = await BrokerHarness.startPaired();
  const token = await harness.token(id);
  await harness.portal.disconnect();
  await harness.time.pass(58 * MINUTE);
  expect(await harness.token(id)).toBe(token);
  expect(await harness.whoami(token)).toBe(200);
  await harness.time.pass(2 * MINUTE);
  const none = await harness.run.tokenIssuer.issue(id, null);
  expect(none).toMatchObject({ kind: 'unavailable' });
  const { retryAfter } = none.kind === 'unavailable' ? none : { retryAfter: 0 };
  expect(retryAfter).toBeGreaterThanOrEqual(1);
  expect(retryAfter).toBeLessThanOrEqual(300);
  await harness.portal.reconnect();
  await harness.time.pass(retryAfter * 1000);
  expect(await harness.whoami(await harness.token(id))).toBe(200);
});

test('token requests while the portal is unreachable cause one refresh attempt, and one more after their Retry-After', async () => {
  const { harness, id } = await BrokerHarness.startPaired();
  await harness.portal.disconnect();
  await harness.time.pass(61 * MINUTE);
  for (let round = 0; round < 3; round++) {
    const before = harness.refreshAttempts;
    const results = await Promise.all(Array.from({ length: 50 }, () => harness.run.tokenIssuer.issue(id, null)));
    for (let i = 0; i < 50; i++) results.push(await harness.run.tokenIssuer.issue(id, null));
    const retryAfters = new Set(results.map((one) => (one.kind === 'unavailable' ? one.retryAfter : one.kind)));
    expect(harness.refreshAttempts).toBe(before + 1);
    expect(retryAfters.size).toBe(1);
    harness.time.suspend(1000 * Number([...retryAfters][0]));
  }
});

test('after a final refusal the current access token is issued until it expires, then the appliance needs pairing', async () => {
  const { harness, id } = await BrokerHarness.startPaired();
  const token = await harness.token(id);
  harness.portal.fail('token', { kind: 'answer', status: 400, body: '{"error":"invalid_grant"}' });
  await harness.untilRefreshed();
  expect(harness.run.grants.get(id)?.health).toMatchObject({ kind: 'refused', problem: { code: 'refused' } });
  expect(await harness.token(id)).toBe(token);
  await harness.time.pass(60 * MINUTE);
  expect(await harness.token(id)).toBe('needs_pairing');
  expect(harness.refreshes).toBe(1);
  await harness.restart();
  expect(await harness.token(id)).toBe('needs_pairing');
  await harness.pairAgain('wallbox');
  expect(await harness.whoami(await harness.token(id))).toBe(200);
});

test.each([
  ['9.5 s', undefined, 9500],
  ['for its own shorter timeout', 2000, 2000],
])('a token request waits %s for a portal that does not respond', async (_, timeout, expected) => {
  const { harness, id } = await BrokerHarness.startPaired();
  const response = Promise.withResolvers<void>();
  // Before the harness, which waits for the response.
  using _response = { [Symbol.dispose]: response.resolve };
  harness.portal.fail('token', { kind: 'wait', until: response.promise });
  harness.time.suspend(61 * MINUTE);
  let result: TokenResult | undefined;
  const request = timeout === undefined ? {} : { deadline: harness.time.uptime + timeout };
  void harness.run.tokenIssuer.issue(id, null, request).then((issued) => {
    result = issued;
  });
  await expect.poll(() => harness.refreshes).toBe(1);
  // Everything but the portal's response comes within one turn of the event loop.
  harness.time.skip(expected - 1);
  await setImmediate();
  expect(result).toBeUndefined();
  harness.time.skip(1);
  await setImmediate();
  const missing = { kind: 'unavailable', reason: 'no_answer_yet', unusableTokenReason: 'expired', retryAfter: 1 };
  expect(result).toEqual(missing);
  response.resolve();
  await harness.time.settle();
  expect(await harness.run.tokenIssuer.issue(id, null)).toMatchObject({ kind: 'token' });
});

test('a token request waits 9.5 s in all for a portal that, after a boot, gives neither the time nor a token', async () => {
  const { harness } = await BrokerHarness.startPaired({ limits: { refreshEndsAccessToken: true } });
  await harness.reboot();
  const time = harness.portal.hold('token');
  const token = harness.portal.hold('token');
  using _responses = {
    [Symbol.dispose]() {
      time.resolve();
      token.resolve();
    },
  };
  let result: string | undefined;
  void requestToken(harness, 'wallbox').then((issued) => {
    result = issued;
  });
  harness.time.skip(5000);
  await setImmediate();
  harness.time.skip(1);
  await expect.poll(() => harness.refreshAttempts).toBe(1);
  harness.time.skip(4498);
  await setImmediate();
  expect(result).toBeUndefined();
  harness.time.skip(1);
  await setImmediate();
  expect(result).toBe('unavailable');
});

test.each([{ kind: 'commit then drop' }, { kind: 'answer', status: 429, headers: { 'retry-after': '60' } }] as const)(
  'an appliance that waits for the end of the current token does not repeat a refresh that has just failed: %o',
  async (fault) => {
    const limits = { refreshEndsAccessToken: true };
    const { harness, id } = await BrokerHarness.startPaired({ limits, retryLostAnswer: 'late' });
    const { grants } = harness.run;
    const managed = grants.get(id);
    if (managed === undefined) throw new Error('there is no grant');
    await harness.time.pass((grants.schedule.usable(managed) ?? 0) - 900);
    const issued = harness.token(id);
    harness.portal.fail('token', fault);
    await grants.refresh(id);
    await harness.time.pass(2000);
    await issued;
    expect(harness.refreshes).toBe(1);
  },
);

test('the hub issues tokens with a lifetime of 3 s whenever the portal responds', async () => {
  const { harness, id } = await BrokerHarness.startPaired({ emulator: { tokenLifetime: 3 } });
  for (let i = 0; i < 60; i += 1) {
    harness.time.suspend(97);
    expect(await harness.run.tokenIssuer.issue(id, null)).toMatchObject({ kind: 'token' });
  }
});

describe('token request with min_ttl', () => {
  const issuedLifetime = async (harness: BrokerHarness, id: string, minTtl: number) => {
    const result = await harness.run.tokenIssuer.issue(id, null, { minTtl });
    return result.kind === 'token' ? result.expiresIn : result.kind;
  };

  test('a token request gets the current token if it lasts min_ttl, and otherwise a new one', async () => {
    const { harness, id } = await BrokerHarness.startPaired();
    await harness.time.pass(30 * MINUTE);
    expect(await issuedLifetime(harness, id, 20 * MINUTE)).toBeLessThanOrEqual(1800);
    expect(harness.refreshes).toBe(0);
    expect(await issuedLifetime(harness, id, 31 * MINUTE)).toBe(3600);
    expect(harness.refreshes).toBe(1);
  });

  test('a token request gets the longest available lifetime if no token lasts min_ttl or the portal is unreachable', async () => {
    const { harness, id } = await BrokerHarness.startPaired();
    await harness.run.grants.refresh(id);
    await harness.time.pass(30 * MINUTE);
    expect(await issuedLifetime(harness, id, 61 * MINUTE)).toBe(1800);
    expect(harness.refreshes).toBe(1);
    await harness.portal.disconnect();
    expect(await issuedLifetime(harness, id, 40 * MINUTE)).toBe(1800);
    expect(await issuedLifetime(harness, id, 40 * MINUTE)).toBe(1800);
    expect(harness.run.grants.get(id)?.health).toMatchObject({ failures: 1 });
  });
});

test('40 waiting token requests are answered after 9.5 s, at most 32 refreshes run, and each grant is refreshed once', async () => {
  const harness = await BrokerHarness.start();
  const ids: string[] = [];
  for (let i = 0; i < 40; i += 1) ids.push(await harness.addPairedAppliance(`appliance-${i}`));
  const response = Promise.withResolvers<void>();
  harness.portal.fail('token', ...Array(40).fill({ kind: 'wait', until: response.promise } as const));
  harness.time.suspend(61 * MINUTE);
  const requests = Promise.all(ids.map((id) => harness.run.tokenIssuer.issue(id, null)));
  await expect.poll(() => harness.refreshes).toBe(32);
  harness.time.skip(9500);
  for (const one of await requests) expect(one).toMatchObject({ kind: 'unavailable', retryAfter: 1 });
  response.resolve();
  await harness.time.settle();
  for (const id of ids) expect(await harness.whoami(await harness.token(id))).toBe(200);
  expect(harness.refreshes).toBe(40);
  expect(harness.emulator.observations).toMatchObject({ overlappingRefreshes: 0, refreshTokensRepeated: 0 });
});
