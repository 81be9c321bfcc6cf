import { statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { BrokerHarness } from './broker-harness.ts';

const MINUTE = 60_000;

test('a hundred simultaneous token requests get one token and cause one refresh', async () => {
  await using home = await BrokerHarness.start();
  const id = await home.addPairedAppliance();
  await home.stop();
  home.time.reboot(home.time.wall);
  const { tokenIssuer, grants } = await home.start();
  const asked = await Promise.all(Array.from({ length: 100 }, () => tokenIssuer.issue(id, 'Monitoring')));
  await Promise.all(Array.from({ length: 100 }, () => grants.refresh(id)));
  expect(new Set(asked.map((one) => (one.kind === 'token' ? one.accessToken.reveal() : one.kind))).size).toBe(1);
  expect(asked[0]).toMatchObject({ kind: 'token', scope: 'Monitoring' });
  // The hand-outs share the first refresh, the refreshes that a person asks for share the second.
  expect(home.refreshes).toBe(2);
  expect(home.emulator.observations).toMatchObject({ overlappingRefreshes: 0, refreshTokensRepeated: 0 });
});

test('an access token of unknown age after a reboot is not reported as expired', async () => {
  await using home = await BrokerHarness.start();
  const id = await home.addPairedAppliance();
  await home.stop();
  home.time.reboot(home.time.wall);
  await home.portal.disconnect();
  await home.start();
  const none = await home.run.tokenIssuer.issue(id, null);
  expect(none).toMatchObject({ kind: 'unavailable', reason: 'portal_unreachable', unusableTokenReason: 'age_unknown' });
});

test('an access token is saved to disk before it is issued', async () => {
  await using home = await BrokerHarness.start();
  const id = await home.addPairedAppliance();
  const first = await home.token(id);
  const disk = Promise.withResolvers<void>();
  home.delayedWrites.set('replaceGrant', disk.promise);
  const refreshing = home.run.grants.refresh(id);
  await expect.poll(() => home.emulator.grants()[0]?.generation).toBe(2);
  expect(await home.token(id)).toBe(first);
  expect(await home.run.store.grant(id)).toMatchObject({
    grant: { generation: 1 },
    attempt: { at: { boot: 'boot-1' } },
  });
  disk.resolve();
  await refreshing;
  const second = await home.token(id);
  expect(second).not.toBe(first);
  const kept = await home.run.store.grant(id);
  expect(kept).toMatchObject({ attempt: null });
  expect(kept?.grant.accessToken.reveal()).toBe(second);
  expect(await home.whoami(second)).toBe(200);
});

test('issuing the current access token writes nothing to disk', async () => {
  await using home = await BrokerHarness.start();
  const id = await home.addPairedAppliance();
  const files = () =>
    ['latchkey.db', 'latchkey.db-wal'].map((name) => {
      const { size, mtimeNs } = statSync(join(home.folder, name), { bigint: true });
      return `${name} ${size} ${mtimeNs}`;
    });
  const before = files();
  for (let i = 0; i < 200; i += 1) expect(await home.run.tokenIssuer.issue(id, null)).toMatchObject({ kind: 'token' });
  await home.time.pass(10 * MINUTE);
  expect(files()).toEqual(before);
  expect(home.refreshes).toBe(0);
});

test('an issued token states its remaining lifetime in whole seconds', async () => {
  await using home = await BrokerHarness.start();
  const id = await home.addPairedAppliance();
  await home.run.grants.refresh(id);
  expect(await home.run.tokenIssuer.issue(id, null)).toMatchObject({ expiresIn: 3600 });
  home.time.suspend(1);
  expect(await home.run.tokenIssuer.issue(id, null)).toMatchObject({ expiresIn: 3599 });
  await home.time.pass(10 * MINUTE);
  expect(await home.run.tokenIssuer.issue(id, null)).toMatchObject({ expiresIn: 2999 });
});

test("a token request for another scope is refused with the grant's scope, and the order of names does not matter", async () => {
  await using home = await BrokerHarness.start();
  const id = await home.addPairedAppliance('wallbox', 'Monitoring RemoteControl');
  const { tokenIssuer } = home.run;
  const has = 'Monitoring RemoteControl';
  expect(await tokenIssuer.issue(id, 'Monitoring')).toEqual({ kind: 'other_scope', scope: has });
  expect(await tokenIssuer.issue(id, `${has} More`)).toEqual({ kind: 'other_scope', scope: has });
  expect(await tokenIssuer.issue(id, 'RemoteControl Monitoring')).toMatchObject({ kind: 'token', scope: has });
});

test('a scope that the refresh has changed is checked before the token is issued', async () => {
  await using home = await BrokerHarness.start();
  const id = await home.addPairedAppliance('wallbox', 'Monitoring');
  home.time.suspend(59.5 * MINUTE);
  home.portal.fail('token', { kind: 'alter', with: (body) => body.replace('"Monitoring"', '"RegisterDevice"') });
  expect(await home.run.tokenIssuer.issue(id, 'Monitoring')).toEqual({ kind: 'other_scope', scope: 'RegisterDevice' });
});

test('the current access token is issued until it expires while the portal is unreachable, then Retry-After is sent', async () => {
  await using home = await BrokerHarness.start();
  const id = await home.addPairedAppliance();
  const token = await home.token(id);
  await home.portal.disconnect();
  await home.time.pass(58 * MINUTE);
  expect(await home.token(id)).toBe(token);
  expect(await home.whoami(token)).toBe(200);
  await home.time.pass(2 * MINUTE);
  const none = await home.run.tokenIssuer.issue(id, null);
  expect(none).toMatchObject({ kind: 'unavailable' });
  const { retryAfter } = none.kind === 'unavailable' ? none : { retryAfter: 0 };
  expect(retryAfter).toBeGreaterThanOrEqual(1);
  expect(retryAfter).toBeLessThanOrEqual(300);
  await home.portal.reconnect();
  await home.time.pass(retryAfter * 1000);
  expect(await home.whoami(await home.token(id))).toBe(200);
});

test('token requests while the portal is unreachable cause at most one refresh', async () => {
  await using home = await BrokerHarness.start();
  const id = await home.addPairedAppliance();
  home.portal.fail('token', ...Array(50).fill({ kind: 'answer', status: 503 } as const));
  await home.time.pass(61 * MINUTE);
  const before = home.refreshes;
  for (let i = 0; i < 100; i += 1) expect(await home.token(id)).toBe('unavailable');
  // One that waits has it tried sooner than the hub would by itself; the others of the next minutes don't.
  expect(home.refreshes).toBeLessThanOrEqual(before + 1);
});

test('after a final refusal the current access token is issued until it expires, then the appliance needs pairing', async () => {
  await using home = await BrokerHarness.start();
  const id = await home.addPairedAppliance();
  const token = await home.token(id);
  home.portal.fail('token', { kind: 'answer', status: 400, body: '{"error":"invalid_grant"}' });
  await home.untilRefreshed();
  expect(home.run.grants.get(id)?.health).toMatchObject({ kind: 'refused', problem: { code: 'refused' } });
  expect(await home.token(id)).toBe(token);
  await home.time.pass(60 * MINUTE);
  expect(await home.token(id)).toBe('needs_pairing');
  expect(home.refreshes).toBe(1);
  await home.stop();
  await home.start();
  expect(await home.token(id)).toBe('needs_pairing');
  await home.pairAgain('wallbox');
  expect(await home.whoami(await home.token(id))).toBe(200);
});

test('a token request waits at most 10 s for a portal that does not respond', async () => {
  await using home = await BrokerHarness.start();
  const id = await home.addPairedAppliance();
  const answer = Promise.withResolvers<void>();
  home.portal.fail('token', { kind: 'wait', until: answer.promise });
  home.time.suspend(61 * MINUTE);
  const asked = home.run.tokenIssuer.issue(id, null);
  await expect.poll(() => home.refreshes).toBe(1);
  home.time.skip(9999);
  const early = await Promise.race([asked, 'nothing yet']);
  expect(early).toBe('nothing yet');
  home.time.skip(1);
  expect(await asked).toMatchObject({ kind: 'unavailable' });
  answer.resolve();
  await home.time.settle();
  expect(await home.run.tokenIssuer.issue(id, null)).toMatchObject({ kind: 'token' });
});

test('the hub issues tokens with a lifetime of 3 s whenever the portal responds', async () => {
  await using home = await BrokerHarness.start({ emulator: { tokenLifetime: 3 } });
  const id = await home.addPairedAppliance();
  for (let i = 0; i < 60; i += 1) {
    home.time.suspend(97);
    expect(await home.run.tokenIssuer.issue(id, null)).toMatchObject({ kind: 'token' });
  }
});

describe('token request with min_ttl', () => {
  const left = async (home: BrokerHarness, id: string, minTtl: number) => {
    const handOut = await home.run.tokenIssuer.issue(id, null, { minTtl });
    return handOut.kind === 'token' ? handOut.expiresIn : handOut.kind;
  };

  test('a token request gets the current token if it lasts min_ttl, and otherwise a new one', async () => {
    await using home = await BrokerHarness.start();
    const id = await home.addPairedAppliance();
    await home.time.pass(30 * MINUTE);
    expect(await left(home, id, 20 * MINUTE)).toBeLessThanOrEqual(1800);
    expect(home.refreshes).toBe(0);
    expect(await left(home, id, 31 * MINUTE)).toBe(3600);
    expect(home.refreshes).toBe(1);
  });

  test('a token request gets the longest available lifetime if no token lasts min_ttl or the portal is unreachable', async () => {
    await using home = await BrokerHarness.start();
    const id = await home.addPairedAppliance();
    await home.run.grants.refresh(id);
    await home.time.pass(30 * MINUTE);
    expect(await left(home, id, 61 * MINUTE)).toBe(1800);
    expect(home.refreshes).toBe(1);
    await home.portal.disconnect();
    expect(await left(home, id, 40 * MINUTE)).toBe(1800);
    expect(await left(home, id, 40 * MINUTE)).toBe(1800);
    expect(home.run.grants.get(id)?.health).toMatchObject({ failures: 1 });
  });

  test('token requests with a high min_ttl in a loop cause at most one refresh a minute', async () => {
    await using home = await BrokerHarness.start();
    const id = await home.addPairedAppliance();
    await home.run.grants.refresh(id);
    for (let s = 0; s < 600; s += 1) {
      await home.time.pass(1000);
      expect(await left(home, id, 60 * MINUTE)).toBeGreaterThan(3500);
    }
    expect(home.refreshes).toBeLessThanOrEqual(10);
    expect(home.refreshes).toBeGreaterThanOrEqual(9);
  });
});

test('a token request with a shorter timeout is answered sooner', async () => {
  await using home = await BrokerHarness.start();
  const id = await home.addPairedAppliance();
  const answer = Promise.withResolvers<void>();
  home.portal.fail('token', { kind: 'wait', until: answer.promise });
  home.time.suspend(61 * MINUTE);
  const asked = home.run.tokenIssuer.issue(id, null, { timeout: 2000 });
  await expect.poll(() => home.refreshes).toBe(1);
  home.time.skip(2000);
  expect(await asked).toMatchObject({
    kind: 'unavailable',
    reason: 'no_answer_yet',
    unusableTokenReason: 'expired',
    retryAfter: 1,
  });
  answer.resolve();
});

test('40 waiting token requests are answered within 10 s, at most 32 refreshes run, and each grant is refreshed once', async () => {
  await using home = await BrokerHarness.start();
  const ids: string[] = [];
  for (let i = 0; i < 40; i += 1) ids.push(await home.addPairedAppliance(`appliance-${i}`));
  const answer = Promise.withResolvers<void>();
  home.portal.fail('token', ...Array(40).fill({ kind: 'wait', until: answer.promise } as const));
  home.time.suspend(61 * MINUTE);
  const asked = Promise.all(ids.map((id) => home.run.tokenIssuer.issue(id, null)));
  await expect.poll(() => home.refreshes).toBe(32);
  home.time.skip(10_000);
  for (const one of await asked) expect(one).toMatchObject({ kind: 'unavailable', retryAfter: 1 });
  answer.resolve();
  await home.time.settle();
  for (const id of ids) expect(await home.whoami(await home.token(id))).toBe(200);
  expect(home.refreshes).toBe(40);
  expect(home.emulator.observations).toMatchObject({ overlappingRefreshes: 0, refreshTokensRepeated: 0 });
});
