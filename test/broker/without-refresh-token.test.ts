import { describe, expect, test } from 'vitest';
import { connectionStatus } from '../../src/broker/status/connection-status.ts';
import { HOUR, MINUTE, SECOND } from '../core/samples.ts';
import { BrokerHarness } from './broker-harness.ts';
import { administrationOf, lanServiceOf, requestToken } from './broker-services.ts';

const NO_REFRESH_TOKEN = { kind: 'alter', with: (body: string) => body.replace('refresh_token', 'x') } as const;
const END = 'The access token has ended';
const REJECTED = 'The portal refuses the access token';
const ADVICE = ', and the portal gave no refresh token: ask for the scope offline_access, then connect again';

/** Starts a hub with one appliance, whose login gave an access token of an hour and no refresh token. */
async function startPaired() {
  const harness = await BrokerHarness.start();
  harness.portal.fail('token', NO_REFRESH_TOKEN);
  const id = await harness.addPairedAppliance();
  return { harness, id, token: await harness.token(id) };
}

const statusOf = (harness: BrokerHarness) => connectionStatus(harness.connection('wallbox'), harness.run, () => '');

const eventsOf = (harness: BrokerHarness, name: string) => harness.events.filter(({ event }) => event === name);

function expectRefused(harness: BrokerHarness, reason = END): void {
  expect(statusOf(harness)).toMatchObject({
    state: 'needs_pairing',
    refreshIn: null,
    problem: { code: 'refused', message: `${reason}${ADVICE}` },
  });
  expect(harness.refreshAttempts).toBe(0);
}

describe('login without a refresh token', () => {
  test('the access token is issued until it ends, whatever appliances request, and then a person is needed', async () => {
    const { harness, id, token } = await startPaired();
    expect(await harness.whoami(token)).toBe(200);
    expect(eventsOf(harness, 'refresh_token_missing')).toMatchObject([
      {
        level: 'warn',
        fields: {
          connection: 'wallbox',
          expires_in: 3600,
          what_to_do: 'ask for the scope offline_access, then connect again',
        },
      },
    ]);
    for (let minute = 1; minute < 59; minute++) {
      await harness.time.pass(MINUTE);
      for (const minTtl of [0, 10 * MINUTE, HOUR, 2 * HOUR]) {
        const result = await harness.run.tokenIssuer.issue(id, null, { minTtl });
        expect(result.kind === 'token' && result.accessToken.reveal()).toBe(token);
      }
      expect(statusOf(harness)).toMatchObject({ state: 'active', problem: null, refreshIn: null });
    }
    expect(statusOf(harness).loginEnds).not.toBeNull();
    expect(eventsOf(harness, 'pairing_needed')).toEqual([]);

    await harness.time.pass(2 * MINUTE);
    expectRefused(harness);
    expect(await harness.token(id)).toBe('needs_pairing');
    expect(eventsOf(harness, 'pairing_needed')).toMatchObject([{ fields: { message: `${END}${ADVICE}` } }]);
    await harness.crash();
    await harness.start();
    await harness.time.pass(HOUR);
    expectRefused(harness);
    expect(await harness.token(id)).toBe('needs_pairing');
    expect(eventsOf(harness, 'pairing_needed')).toHaveLength(1);
  });

  test('an access token that an appliance reports as rejected is not issued again, and a person is needed at once', async () => {
    const { harness, id, token } = await startPaired();
    const wallbox = harness.run.appliances.get('wallbox');
    await lanServiceOf(harness).revoke(wallbox, 'another-token');
    expect(await harness.token(id)).toBe(token);
    await lanServiceOf(harness).revoke(wallbox, token);
    expectRefused(harness, REJECTED);
    expect(await harness.token(id)).toBe('needs_pairing');
    await harness.crash();
    await harness.start();
    expectRefused(harness, REJECTED);
    expect(await harness.token(id)).toBe('needs_pairing');
  });

  test('a rejection whose refusal could not be stored before a power cut is applied at the next start', async () => {
    const { harness, id, token } = await startPaired();
    harness.failingWrites.add('grants.endAttempt');
    await harness.run.grants.reportRejectedToken(id, token);
    expectRefused(harness, REJECTED);
    await harness.crash();
    harness.failingWrites.clear();
    await harness.start();
    await harness.time.pass(SECOND);
    expectRefused(harness, REJECTED);
    expect((await harness.run.store.grants.get(id))?.grant.refused).not.toBeNull();
  });

  test.each([
    ['before its end', 10 * MINUTE, 'token'],
    ['after its end', 2 * HOUR, 'needs_pairing'],
  ])(
    'after a boot the access token is neither issued nor refused until the clock is confirmed, %s',
    async (_, off, then) => {
      const { harness, id, token } = await startPaired();
      await harness.portal.disconnect();
      await harness.reboot(harness.time.wall + off);
      const { run, time } = harness;
      for (let passed = 0; passed < (then === 'token' ? 30 * MINUTE : 5 * HOUR); passed += 10 * MINUTE) {
        expect(await run.tokenIssuer.issue(id, null)).toMatchObject({
          kind: 'unavailable',
          unusableTokenReason: 'age_unknown',
          retryAfter: 10,
        });
        expect(statusOf(harness)).toMatchObject({
          state: 'retrying',
          problem: { code: 'clock_unknown' },
          refreshIn: null,
        });
        await time.pass(10 * MINUTE);
      }
      run.referenceClock.recordNtpTime();
      await time.pass(SECOND);
      expect(await harness.token(id)).toBe(then === 'token' ? token : 'needs_pairing');
      expect(harness.refreshAttempts).toBe(0);
      if (then !== 'token') expectRefused(harness);
    },
  );

  test('after a boot an appliance gets the access token at once, because the hub asks the portal for the time', async () => {
    const { harness, token } = await startPaired();
    await harness.reboot(harness.time.wall + 10 * MINUTE);
    let issued: string | null = null;
    void requestToken(harness, 'wallbox').then((result) => {
      issued = result;
    });
    await harness.time.settle();
    expect(issued).toBe(token);
    expect(harness.refreshAttempts).toBe(0);
  });

  test('a person who wants to refresh the connection is told that there is no refresh token', async () => {
    const { harness, id, token } = await startPaired();
    for (const state of ['active', 'needs_pairing']) {
      expect(statusOf(harness).state).toBe(state);
      await expect(administrationOf(harness).refresh('wallbox')).rejects.toMatchObject({
        code: 'token_unavailable',
        message:
          'wallbox can\'t be refreshed, because the portal gave no refresh token: ask for the scope offline_access, then run "latchkey pair wallbox"',
      });
      expect(await harness.token(id)).toBe(state === 'active' ? token : 'needs_pairing');
      await harness.time.pass(HOUR);
    }
    expect(harness.refreshAttempts).toBe(0);
  });

  test('a later login that gives a refresh token replaces the grant, which is refreshed from then on', async () => {
    const { harness, id } = await startPaired();
    await harness.pairAgain('wallbox');
    await harness.time.pass(HOUR);
    expect(harness.refreshes).toBe(1);
    expect(statusOf(harness)).toMatchObject({ state: 'active', problem: null, loginEnds: null });
    expect(await harness.whoami(await harness.token(id))).toBe(200);
  });

  test('a grant that could not be stored at first is stored later, and refused only at its end', async () => {
    const harness = await BrokerHarness.start();
    harness.portal.fail('token', NO_REFRESH_TOKEN);
    harness.failingWrites.add('saveLogin');
    const id = await harness.addPairedAppliance();
    const token = await harness.token(id);
    expect(statusOf(harness)).toMatchObject({ state: 'retrying', problem: { code: 'store_unwritable' } });
    await harness.time.pass(10 * MINUTE);
    harness.failingWrites.clear();
    harness.run.grants.onStoreWritable();
    await harness.time.pass(10 * SECOND);
    expect(statusOf(harness)).toMatchObject({ state: 'active', problem: null });
    expect((await harness.run.store.grants.get(id))?.grant).toMatchObject({ refreshToken: null, refused: null });
    expect(await harness.token(id)).toBe(token);
    await harness.time.pass(HOUR);
    expectRefused(harness);
  });
});
