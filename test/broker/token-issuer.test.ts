import { statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { BrokerHarness } from './broker-harness.ts';

const MINUTE = 60_000;

test('a hundred that ask at once get one token and cost one refresh', async () => {
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

test('a token whose age nobody knows after a boot is not said to have run out', async () => {
  await using home = await BrokerHarness.start();
  const id = await home.addPairedAppliance();
  await home.stop();
  home.time.reboot(home.time.wall);
  await home.portal.disconnect();
  await home.start();
  const none = await home.run.tokenIssuer.issue(id, null);
  expect(none).toMatchObject({ kind: 'unavailable', reason: 'portal_unreachable', unusableTokenReason: 'age_unknown' });
});

test('the token that is handed out is on disk before anybody sees it', async () => {
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

test('a hand-out from memory writes nothing', async () => {
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

test('a hand-out says what is left of the token, in whole seconds', async () => {
  await using home = await BrokerHarness.start();
  const id = await home.addPairedAppliance();
  await home.run.grants.refresh(id);
  expect(await home.run.tokenIssuer.issue(id, null)).toMatchObject({ expiresIn: 3600 });
  home.time.suspend(1);
  expect(await home.run.tokenIssuer.issue(id, null)).toMatchObject({ expiresIn: 3599 });
  await home.time.pass(10 * MINUTE);
  expect(await home.run.tokenIssuer.issue(id, null)).toMatchObject({ expiresIn: 2999 });
});

test('another scope than the grant has is refused and named; the order of its names does not matter', async () => {
  await using home = await BrokerHarness.start();
  const id = await home.addPairedAppliance('wallbox', 'Monitoring RemoteControl');
  const { tokenIssuer } = home.run;
  const has = 'Monitoring RemoteControl';
  expect(await tokenIssuer.issue(id, 'Monitoring')).toEqual({ kind: 'other_scope', scope: has });
  expect(await tokenIssuer.issue(id, `${has} More`)).toEqual({ kind: 'other_scope', scope: has });
  expect(await tokenIssuer.issue(id, 'RemoteControl Monitoring')).toMatchObject({ kind: 'token', scope: has });
});

test('a scope that a refresh has changed is looked at again before the token is handed out', async () => {
  await using home = await BrokerHarness.start();
  const id = await home.addPairedAppliance('wallbox', 'Monitoring');
  home.time.suspend(59.5 * MINUTE);
  home.portal.fail('token', { kind: 'alter', with: (body) => body.replace('"Monitoring"', '"RegisterDevice"') });
  expect(await home.run.tokenIssuer.issue(id, 'Monitoring')).toEqual({ kind: 'other_scope', scope: 'RegisterDevice' });
});

test('with the portal out of reach the token at hand is served to its end, and then there is a time to come again', async () => {
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

test('appliances that ask while the portal is out of reach do not storm it', async () => {
  await using home = await BrokerHarness.start();
  const id = await home.addPairedAppliance();
  home.portal.fail('token', ...Array(50).fill({ kind: 'answer', status: 503 } as const));
  await home.time.pass(61 * MINUTE);
  const before = home.refreshes;
  for (let i = 0; i < 100; i += 1) expect(await home.token(id)).toBe('unavailable');
  // One that waits has it tried sooner than the hub would by itself; the others of the next minutes don't.
  expect(home.refreshes).toBeLessThanOrEqual(before + 1);
});

test('after a final refusal the token at hand is served to its end, and then a person is needed', async () => {
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

test('nobody waits longer than ten seconds for a portal that says nothing', async () => {
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

test('of tokens that live a few seconds one is handed out whenever the portal answers', async () => {
  await using home = await BrokerHarness.start({ emulator: { tokenLifetime: 3 } });
  const id = await home.addPairedAppliance();
  for (let i = 0; i < 60; i += 1) {
    home.time.suspend(97);
    expect(await home.run.tokenIssuer.issue(id, null)).toMatchObject({ kind: 'token' });
  }
});

describe('an appliance that wants a token to last', () => {
  const left = async (home: BrokerHarness, id: string, minTtl: number) => {
    const handOut = await home.run.tokenIssuer.issue(id, null, { minTtl });
    return handOut.kind === 'token' ? handOut.expiresIn : handOut.kind;
  };

  test('gets the one at hand while that is enough, and another one when it is not', async () => {
    await using home = await BrokerHarness.start();
    const id = await home.addPairedAppliance();
    await home.time.pass(30 * MINUTE);
    expect(await left(home, id, 20 * MINUTE)).toBeLessThanOrEqual(1800);
    expect(home.refreshes).toBe(0);
    expect(await left(home, id, 31 * MINUTE)).toBe(3600);
    expect(home.refreshes).toBe(1);
  });

  test('gets what there is, honestly, where no token lasts so long, or the portal is out of reach', async () => {
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

  test('in a loop costs the portal one refresh a minute at most', async () => {
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

test('who will wait less is answered sooner', async () => {
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

test('of more that wait than the portal is sent at once, each is answered within ten seconds, and refreshed once', async () => {
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
