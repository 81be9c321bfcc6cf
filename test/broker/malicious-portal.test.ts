import { describe, expect, test } from 'vitest';
import { MINUTE, SECOND } from '../core/samples.ts';
import { httpResponse } from '../support/raw-server.ts';
import { BrokerHarness } from './broker-harness.ts';
import { expectPairedByPolling } from './logins.ts';

/** A token response with these members in place of good ones. */
function tokenResponseWith(changes: Record<string, unknown>) {
  const good = { access_token: 'another-access', refresh_token: 'another-refresh', expires_in: 3600 };
  return { kind: 'bytes', bytes: httpResponse(200, JSON.stringify({ ...good, ...changes })) } as const;
}

describe('portal with invalid tokens', () => {
  test.each([
    ['a line break', 'a\r\nX-Injected: 1'],
    ['an escape sequence', 'a\u001b]0;title\u0007'],
    ['more than 16 KiB', 'a'.repeat(16_385)],
  ])('a portal token with %s leaves the grant in doubt, and the current tokens stay', async (_, odd) => {
    const { harness, id } = await BrokerHarness.startPaired();
    const before = (await harness.run.store.grants.get(id))?.grant ?? expect.fail('not paired');
    for (const name of ['access_token', 'refresh_token']) {
      harness.portal.fail('token', tokenResponseWith({ [name]: odd }));
      await harness.run.grants.refresh(id);
      expect(await harness.token(id)).toBe(before.accessToken.reveal());
      const after = (await harness.run.store.grants.get(id))?.grant;
      expect(after?.refreshToken?.reveal()).toBe(before.refreshToken?.reveal());
      expect(after?.doubt).not.toBeNull();
      expect(after?.refused).toBeNull();
    }
    // The portal has not used the refresh token, so the next valid response ends the doubt.
    await harness.run.grants.refresh(id);
    expect(harness.run.grants.get(id)?.health).toEqual({ kind: 'good' });
    expect(await harness.whoami(await harness.token(id))).toBe(200);
  });

  test('an invalid refresh token in a code exchange creates no grant, and the pairing needs another login', async () => {
    const { harness, appliance } = await BrokerHarness.startUnpaired();
    const run = await harness.beginPairing('wallbox');
    harness.portal.fail('token', tokenResponseWith({ refresh_token: 'a\r\nb' }));
    await harness.login(run);
    await harness.time.pass(10 * SECOND);
    expect(run.pairing.lastFailure).toBe('answer_lost');
    expect(await harness.token(appliance.id)).toBe('not_paired');
    await expectPairedByPolling(harness, run);
  });
});

describe('portal that says an impossible lifetime', () => {
  const altered = (expiresIn: string) =>
    ({ kind: 'alter', with: (body: string) => body.replace(/"expires_in":\d+/, `"expires_in":${expiresIn}`) }) as const;

  test.each(['0', '-1', '"0.0"'])(
    'expires_in %s is a problem that names the key, and the portal is asked less and less often',
    async (expiresIn) => {
      const { harness, id } = await BrokerHarness.startPaired();
      harness.portal.fail('token', ...Array.from({ length: 300 }, () => altered(expiresIn)));
      await harness.run.grants.refresh(id);
      await harness.time.pass(6 * 60 * MINUTE);
      expect(harness.refreshes).toBeLessThan(40);
      expect(harness.statusOf('wallbox')).toMatchObject({
        state: 'retrying',
        problem: {
          code: 'portal_rejected',
          message: expect.stringMatching(/live -?\d s, .*: set portals\.\w+\.token_lifetime$/),
        },
      });
      expect(await harness.token(id)).toBe('unavailable');
      harness.portal.clearFaults('token');
      await harness.time.pass(61 * MINUTE);
      expect(harness.statusOf('wallbox')).toMatchObject({ state: 'active', problem: null });
      expect(await harness.whoami(await harness.token(id))).toBe(200);
    },
  );

  test('with an expires_in that is a time the token is issued, and the problem names the key', async () => {
    const { harness, id } = await BrokerHarness.startPaired();
    harness.portal.fail('token', ...Array.from({ length: 300 }, () => altered('1764400000')));
    await harness.run.grants.refresh(id);
    await harness.time.pass(6 * 60 * MINUTE);
    expect(harness.refreshes).toBeLessThan(10);
    expect(harness.statusOf('wallbox')).toMatchObject({ state: 'retrying', problem: { code: 'portal_rejected' } });
    expect(await harness.whoami(await harness.token(id))).toBe(200);
  });

  test('after a lost answer, an expires_in of 0 is that of the same tokens again: the hub gets new ones at once', async () => {
    const { harness, id } = await BrokerHarness.startPaired();
    harness.portal.fail('token', { kind: 'drop' }, altered('0'));
    await harness.run.grants.refresh(id);
    await harness.time.pass(10 * SECOND);
    expect(harness.statusOf('wallbox')).toMatchObject({ state: 'active', problem: null });
    expect(await harness.whoami(await harness.token(id))).toBe(200);
  });
});

describe('portal with very short-lived tokens', () => {
  const PERIOD = 15 * MINUTE;
  /** The most refreshes in this time: a burst of 60, and one more every 30 s, the last one at its end. */
  const MAX_REFRESHES = 61 + PERIOD / (30 * SECOND);

  test.each([1, 3, 10])(
    'a portal with tokens of %d s is asked for at most 61 refreshes and one each 30 s',
    async (tokenLifetime) => {
      const { harness } = await BrokerHarness.startPaired({ emulator: { tokenLifetime } });
      await harness.time.pass(PERIOD);
      expect(harness.refreshes).toBeLessThanOrEqual(MAX_REFRESHES);
      // The hub still refreshes the grant.
      expect(harness.refreshes).toBeGreaterThan(PERIOD / (40 * SECOND));
    },
  );

  test('a portal with tokens of 3 s that turns to invalid responses is not asked more often either', async () => {
    const { harness } = await BrokerHarness.startPaired({ emulator: { tokenLifetime: 3 } });
    harness.portal.fail('token', ...Array.from({ length: 2000 }, () => tokenResponseWith({ access_token: '' })));
    await harness.time.pass(PERIOD);
    expect(harness.refreshes).toBeLessThanOrEqual(MAX_REFRESHES);
    expect(harness.refreshes).toBeGreaterThan(MAX_REFRESHES - 5);
  });

  test('an appliance always gets a valid token of a portal with tokens of 3 s, with its true remaining lifetime', async () => {
    const { harness, id } = await BrokerHarness.startPaired({ emulator: { tokenLifetime: 3 } });
    await harness.time.pass(PERIOD);
    for (let count = 0; count < 20; count += 1) {
      await harness.time.pass(7300);
      const result = await harness.run.tokenIssuer.issue(id, null);
      if (result.kind !== 'token') return expect.fail(result.kind);
      expect(result.expiresIn).toBeLessThanOrEqual(3);
      expect(await harness.whoami(result.accessToken.reveal())).toBe(200);
    }
  });

  test('a portal with tokens of 1 s is asked for an appliance at most once every 2 s', async () => {
    const { harness, id } = await BrokerHarness.startPaired({ emulator: { tokenLifetime: 1 } });
    const before = harness.refreshes;
    for (let count = 0; count < 600; count += 1) {
      await harness.time.pass(100);
      await harness.run.tokenIssuer.issue(id, null);
    }
    expect(harness.refreshes - before).toBeLessThanOrEqual(MINUTE / (2 * SECOND));
    expect(harness.refreshes - before).toBeGreaterThan(MINUTE / (3 * SECOND));
  });
});
