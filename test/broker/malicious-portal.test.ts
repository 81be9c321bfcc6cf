import { describe, expect, test } from 'vitest';
import { httpResponse } from '../support/raw-server.ts';
import { BrokerHarness, pairingResult } from './broker-harness.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** A token response with these members in place of good ones. */
function tokens(changes: Record<string, unknown>) {
  const good = { access_token: 'another-access', refresh_token: 'another-refresh', expires_in: 3600 };
  return { kind: 'bytes', bytes: httpResponse(200, JSON.stringify({ ...good, ...changes })) } as const;
}

describe('portal with invalid tokens', () => {
  test.each([
    ['a line break', 'a\r\nX-Injected: 1'],
    ['an escape sequence', 'a\u001b]0;title\u0007'],
    ['more than 16 KiB', 'a'.repeat(16_385)],
  ])('a portal token with %s leaves the grant in doubt, and the current tokens stay', async (_, odd) => {
    await using home = await BrokerHarness.start();
    const id = await home.addPairedAppliance();
    const before = (await home.run.store.grant(id))?.grant ?? expect.fail('not paired');
    for (const name of ['access_token', 'refresh_token']) {
      home.portal.fail('token', tokens({ [name]: odd }));
      await home.run.grants.refresh(id);
      expect(await home.token(id)).toBe(before.accessToken.reveal());
      const after = (await home.run.store.grant(id))?.grant;
      expect(after?.refreshToken.reveal()).toBe(before.refreshToken.reveal());
      expect(after?.doubt).not.toBeNull();
      expect(after?.refused).toBeNull();
    }
    // The portal had done nothing: with its next answer in order, all is well again.
    await home.run.grants.refresh(id);
    expect(home.run.grants.get(id)?.health).toEqual({ kind: 'good' });
    expect(await home.whoami(await home.token(id))).toBe(200);
  });

  test('an invalid refresh token in a code exchange creates no grant, and the pairing needs another login', async () => {
    await using home = await BrokerHarness.start();
    const { appliance } = await home.addAppliance('wallbox');
    const run = await home.beginPairing('wallbox');
    home.portal.fail('token', tokens({ refresh_token: 'a\r\nb' }));
    await home.login(run);
    await home.time.pass(10 * SECOND);
    expect(run.pairing.lastFailure).toBe('answer_lost');
    expect(await home.token(appliance.id)).toBe('not_paired');
    await home.login(run);
    await home.time.pass(10 * SECOND);
    expect(pairingResult(run.pairing.step)).toBe('paired');
  });
});

describe('portal with very short-lived tokens', () => {
  /** In an hour: sixty at once, and one more each half minute, at its end too. */
  const MOST = 61 + HOUR / (30 * SECOND);

  test.each([1, 3, 10])(
    'a portal with tokens of %d s is asked for at most 61 refreshes and one each 30 s in an hour',
    async (tokenLifetime) => {
      await using home = await BrokerHarness.start({ emulator: { tokenLifetime } });
      await home.addPairedAppliance();
      await home.time.pass(HOUR);
      expect(home.refreshes).toBeLessThanOrEqual(MOST);
      // The grant is looked after all the same.
      expect(home.refreshes).toBeGreaterThan(HOUR / (40 * SECOND));
    },
  );

  test('a portal with tokens of 3 s that turns to invalid responses is not asked more often either', async () => {
    await using home = await BrokerHarness.start({ emulator: { tokenLifetime: 3 } });
    await home.addPairedAppliance();
    home.portal.fail('token', ...Array.from({ length: 2000 }, () => tokens({ access_token: '' })));
    await home.time.pass(HOUR);
    expect(home.refreshes).toBeLessThanOrEqual(MOST);
  });

  test('an appliance always gets a valid token of a portal with tokens of 3 s, with its true remaining lifetime', async () => {
    await using home = await BrokerHarness.start({ emulator: { tokenLifetime: 3 } });
    const id = await home.addPairedAppliance();
    await home.time.pass(HOUR);
    for (let asked = 0; asked < 20; asked += 1) {
      await home.time.pass(7300);
      const handOut = await home.run.tokenIssuer.issue(id, null);
      if (handOut.kind !== 'token') return expect.fail(handOut.kind);
      expect(handOut.expiresIn).toBeLessThanOrEqual(3);
      expect(await home.whoami(handOut.accessToken.reveal())).toBe(200);
    }
  });

  test('a portal with tokens of 1 s is asked for an appliance at most once every 2 s', async () => {
    await using home = await BrokerHarness.start({ emulator: { tokenLifetime: 1 } });
    const id = await home.addPairedAppliance();
    const before = home.refreshes;
    for (let asked = 0; asked < 600; asked += 1) {
      await home.time.pass(100);
      await home.run.tokenIssuer.issue(id, null);
    }
    expect(home.refreshes - before).toBeLessThanOrEqual(MINUTE / (2 * SECOND));
  });
});
