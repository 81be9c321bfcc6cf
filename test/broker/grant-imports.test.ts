// Imports of another program's grant, on a real store and with a real emulator as the portal.
import { describe, expect, test } from 'vitest';
import type { GrantImport } from '../../src/core/connections/connection-administration.ts';
import { Secret } from '../../src/core/secret.ts';
import { drain } from '../../src/hub/handover.ts';
import { MINUTE } from '../core/samples.ts';
import { OtherClient } from '../support/other-client.ts';
import { httpResponse } from '../support/raw-server.ts';
import { BrokerHarness, type BrokerHarnessOptions, pairingResult } from './broker-harness.ts';
import { administrationOf } from './broker-services.ts';

/** A broker whose store writes in the order of the requests, and a program that holds a grant of its own. */
async function startImport(options: BrokerHarnessOptions = {}) {
  const harness = await BrokerHarness.start({ writeTimes: [0, 0], ...options });
  return { harness, other: await OtherClient.logIn(harness.emulator) };
}

function importTo(harness: BrokerHarness, refreshToken: string, changes: Partial<GrantImport> = {}) {
  const request = { name: 'cloud', portal: null, scope: 'Monitoring', replace: false, ...changes };
  return administrationOf(harness).importGrant({ ...request, refreshToken: new Secret(refreshToken) });
}

const refusal = (code: string, message: RegExp) => ({ code, message: expect.stringMatching(message) });
const stateOf = (harness: BrokerHarness, name = 'cloud') =>
  administrationOf(harness).connectionStatusOf(harness.run.connections.get(name)).state;
const tokenOf = (harness: BrokerHarness, name = 'cloud') => harness.token(harness.run.connections.get(name).id);

/** A refresh works, now and after a restart. */
async function expectUsable(harness: BrokerHarness, name = 'cloud'): Promise<void> {
  for (const isRestarted of [false, true]) {
    if (isRestarted) await harness.restart();
    const { refreshes } = harness;
    await harness.run.grants.refresh(harness.run.connections.get(name).id);
    expect(harness.refreshes).toBe(refreshes + 1);
    expect([stateOf(harness, name), await harness.whoami(await tokenOf(harness, name))]).toEqual(['active', 200]);
  }
}

describe('import of a grant', () => {
  test('an import adds the connection, and gets an access token at once', async () => {
    const { harness, other } = await startImport();
    expect(await importTo(harness, other.refreshToken)).toMatchObject({
      name: 'cloud',
      state: 'active',
      scope: 'Monitoring',
      users: [],
    });
    expect(harness.connection('cloud').origin).toBe('added');
    expect(await harness.whoami(await tokenOf(harness))).toBe(200);
    expect(await other.refresh()).toBe(400);
    expect(harness.emittedEvents).toMatchObject([{ kind: 'paired', connection: harness.connection('cloud').id }]);
    expect(harness.events.filter(({ event }) => event === 'grant_imported')).toHaveLength(1);
    await harness.untilRefreshed();
    await expectUsable(harness);
  });

  test.each([
    ['in the largest year of a date, and older than it', { date: 'Sat, 13 Sep 275760 00:00:00 GMT', age: '999999999' }],
    ['in 2024', { date: 'Tue, 31 Dec 2024 23:59:59 GMT' }],
    ['in 1970', { date: 'Thu, 01 Jan 1970 00:00:00 GMT' }],
    ['in 2100', { date: 'Fri, 01 Jan 2100 00:00:00 GMT' }],
    ['in 2099, and cached for years', { date: 'Thu, 31 Dec 2099 23:59:59 GMT', age: '99999999' }],
  ])('the tokens of a response that was made %s are kept, and its date is ignored', async (_, headers) => {
    const { harness } = await startImport();
    const body = JSON.stringify({ access_token: 'access', refresh_token: 'refresh', expires_in: 3600 });
    harness.portal.fail('token', { kind: 'bytes', bytes: httpResponse(200, body, headers) });
    expect(await importTo(harness, 'of-another-program')).toMatchObject({ state: 'active' });
    const { id } = harness.run.connections.get('cloud');
    const stored = (await harness.run.store.grants.get(id))?.grant;
    expect([stored?.refreshToken?.reveal(), stored?.portalTime]).toEqual(['refresh', null]);
    expect(harness.run.referenceClock.readings).toEqual([]);
  });

  test('a reload waits for an import that was sent, and no other one is sent', async () => {
    const { harness, other } = await startImport();
    const held = harness.portal.hold('token');
    const imported = importTo(harness, other.refreshToken);
    while (harness.refreshes === 0) await new Promise(setImmediate);
    let isDrained = false;
    const drained = drain(harness.run, harness.time, new AbortController().signal).then(() => {
      isDrained = true;
    });
    await expect(importTo(harness, 'another-token', { name: 'second' })).rejects.toMatchObject({
      code: 'hub_stopping',
    });
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    expect(isDrained).toBe(false);
    held.resolve();
    await Promise.all([imported, drained]);
    expect(harness.refreshes).toBe(1);
    expect(await harness.whoami(await tokenOf(harness))).toBe(200);
  });

  test('an import to a connection that exists serves the appliances that use it', async () => {
    const { harness, other } = await startImport();
    await harness.addConnection('cloud');
    await harness.addUser('heater', 'cloud');
    await importTo(harness, other.refreshToken, { scope: null });
    expect(harness.statusOf('heater')).toMatchObject({ state: 'active', connection: 'cloud' });
    await expectUsable(harness);
  });

  test.each([
    [{ scope: 'Other' }, 'connection_mismatch', /the scope "Other", and the connection cloud has "Monitoring"/],
    [{ portal: 'other' }, 'connection_mismatch', /the portal other, and the connection cloud is at home/],
    [{ name: 'a\nb' }, 'name_invalid', /not a valid connection name/],
    [{ name: 'new', scope: 'a"b' }, 'scope_invalid', /not allowed/],
    [{ name: 'new', portal: 'nowhere' }, 'portal_unknown', /no portal nowhere/],
    [{ name: 'new', portal: 'other' }, 'portal_unknown', /other is not configured/],
  ] as const)('an import with %o fails before anything is sent: %s', async (changes, code, message) => {
    const { harness, other } = await startImport();
    await harness.addConnection('cloud');
    await expect(importTo(harness, other.refreshToken, changes)).rejects.toMatchObject(refusal(code, message));
    expect(harness.refreshes).toBe(0);
    expect(harness.run.connections.list()).toEqual([harness.connection('cloud')]);
    expect(await other.refresh()).toBe(200);
  });

  test('an import does not go to the connection of an appliance that waits for approval', async () => {
    const { harness, other } = await startImport();
    const { registrations } = harness.run;
    registrations.setOpenFor(MINUTE);
    const metadata = { clientName: 'cloud', scope: null, softwareId: null, keys: [{ kty: 'EC' }] };
    await registrations.register(metadata, null, 'a stranger');
    expect(await importTo(harness, other.refreshToken)).toMatchObject({ state: 'active', users: [] });
    expect(harness.run.appliances.list().map(({ name }) => name)).toEqual(['cloud-2']);
    // The stranger is not approved in time.
    await harness.time.pass(25 * 60 * MINUTE);
    expect(harness.run.appliances.list()).toEqual([]);
    await expectUsable(harness);
  });
});

describe('import that fails', () => {
  test.each([
    ['an unknown token', null, /does not accept this refresh token.*nothing was kept/],
    ['wrong credentials', { kind: 'answer', status: 401, body: '{"error":"invalid_client"}' }, /client_id and client/],
    ['a portal that defers it', { kind: 'answer', status: 429 }, /come back later.*nothing was kept/],
    ['a portal that rejects it', { kind: 'answer', status: 400, body: '{"error":"invalid_scope"}' }, /rejects the/],
  ] as const)('an import with %s leaves nothing behind', async (_what, fault, message) => {
    const { harness, other } = await startImport();
    const token = fault === null ? 'a-token-of-nobody' : other.refreshToken;
    if (fault !== null) harness.portal.fail('token', fault);
    await expect(importTo(harness, token)).rejects.toMatchObject(refusal('import_failed', message));
    expect(harness.run.connections.list()).toEqual([]);
    await harness.restart();
    expect([await harness.run.store.registry.connections(), await harness.run.store.grants.all()]).toEqual([[], []]);
    await harness.time.pass(60 * MINUTE);
    expect(harness.refreshes).toBe(1);
    expect(await other.refresh()).toBe(200);
    await importTo(harness, other.refreshToken);
    await expectUsable(harness);
  });

  test('an import to an unreachable portal leaves nothing behind, and can be repeated', async () => {
    const { harness, other } = await startImport();
    await harness.addConnection('cloud');
    await harness.portal.disconnect();
    const message = /could not be reached, so the refresh token was not used/;
    await expect(importTo(harness, other.refreshToken)).rejects.toMatchObject(refusal('import_failed', message));
    await harness.portal.reconnect();
    await harness.restart();
    expect([stateOf(harness), await harness.run.store.grants.all()]).toEqual(['unpaired', []]);
    await harness.time.pass(60 * MINUTE);
    expect(harness.refreshes).toBe(0);
    await importTo(harness, other.refreshToken);
    await expectUsable(harness);
  });

  test('an import whose answer was lost is in doubt, and the hub gets the tokens later by itself', async () => {
    const { harness, other } = await startImport({ emulator: { refreshGraceTime: 3600 } });
    harness.portal.fail('token', { kind: 'commit then drop' });
    const message = /answer was lost.*the connection cloud has the refresh token.*do not use the token elsewhere/;
    await expect(importTo(harness, other.refreshToken)).rejects.toMatchObject(refusal('import_failed', message));
    expect(administrationOf(harness).connectionStatusOf(harness.connection('cloud'))).toMatchObject({
      state: 'retrying',
      problem: { code: 'answer_lost' },
    });
    expect(await tokenOf(harness)).toBe('unavailable');
    await harness.restart();
    expect(stateOf(harness)).toBe('retrying');
    await harness.untilRefreshed();
    await expectUsable(harness);
  });

  test('an import that a power cut interrupts is in doubt after the restart', async () => {
    const { harness, other } = await startImport({ emulator: { refreshGraceTime: 3600 } });
    const response = harness.portal.hold('token');
    const imported = importTo(harness, other.refreshToken).catch(() => undefined);
    while (harness.refreshes === 0) await new Promise(setImmediate);
    await harness.crash();
    response.resolve();
    await imported;
    await harness.start();
    expect(stateOf(harness)).toBe('retrying');
    await harness.untilRefreshed();
    await expectUsable(harness);
  });

  test.each(['registry.save', 'grants.beginImport'] as const)(
    'an import that cannot be written ahead (%s) is not sent, and leaves nothing behind',
    async (write) => {
      const { harness, other } = await startImport();
      harness.failingWrites.add(write);
      await expect(importTo(harness, other.refreshToken)).rejects.toMatchObject({ code: 'store_unwritable' });
      harness.failingWrites.clear();
      expect(harness.refreshes).toBe(0);
      expect(harness.run.connections.list()).toEqual([]);
      await harness.restart();
      expect([await harness.run.store.registry.connections(), await harness.run.store.grants.all()]).toEqual([[], []]);
      await importTo(harness, other.refreshToken);
      await expectUsable(harness);
    },
  );

  test('tokens of an import that cannot be saved are served from memory, and saved later', async () => {
    const { harness, other } = await startImport();
    const response = harness.portal.hold('token');
    const imported = importTo(harness, other.refreshToken);
    while (harness.refreshes === 0) await new Promise(setImmediate);
    harness.failingWrites.add('saveLogin');
    response.resolve();
    await imported;
    expect(await harness.whoami(await tokenOf(harness))).toBe(200);
    harness.failingWrites.clear();
    expect(await harness.run.grants.save()).toBe(true);
    await expectUsable(harness);
  });

  test('of two imports to one connection at once, one is refused and its token is not sent', async () => {
    const { harness, other } = await startImport();
    const second = await OtherClient.logIn(harness.emulator);
    const results = await Promise.allSettled([
      importTo(harness, other.refreshToken),
      importTo(harness, second.refreshToken),
    ]);
    expect(results).toMatchObject([
      { status: 'fulfilled' },
      { status: 'rejected', reason: refusal('not_allowed', /an import to the connection cloud is under way/) },
    ]);
    expect(harness.refreshes).toBe(1);
    expect(await second.refresh()).toBe(200);
    await expectUsable(harness);
  });
});

describe('import to a paired connection', () => {
  /** A broker with a paired connection, and a program that holds a grant of its own. */
  async function startPaired(options: BrokerHarnessOptions = {}) {
    const started = await startImport(options);
    await started.harness.addConnection('cloud');
    await started.harness.pairAgain('cloud');
    return started;
  }

  test('an import replaces a grant only on request', async () => {
    const { harness, other } = await startPaired();
    const before = await tokenOf(harness);
    await expect(importTo(harness, other.refreshToken)).rejects.toMatchObject(
      refusal('not_allowed', /the connection cloud has a grant already: add --yes/),
    );
    expect([await tokenOf(harness), harness.refreshes]).toEqual([before, 0]);
    await importTo(harness, other.refreshToken, { replace: true });
    expect(await tokenOf(harness)).not.toBe(before);
    expect(await other.refresh()).toBe(400);
    await expectUsable(harness);
  });

  test.each([
    ['is refused', null],
    ['is not sent', { kind: 'answer', status: 429 }],
  ] as const)('the grant of a connection is kept if an import that would replace it %s', async (_what, fault) => {
    const { harness } = await startPaired();
    const before = await tokenOf(harness);
    if (fault !== null) harness.portal.fail('token', fault);
    await expect(importTo(harness, 'a-token-of-nobody', { replace: true })).rejects.toMatchObject({
      code: 'import_failed',
    });
    expect([stateOf(harness), await tokenOf(harness)]).toEqual(['active', before]);
    await expectUsable(harness);
  });

  test('the grant of a connection is kept if an import that would replace it cannot be written ahead', async () => {
    const { harness, other } = await startPaired();
    harness.failingWrites.add('grants.beginAttempt');
    await expect(importTo(harness, other.refreshToken, { replace: true })).rejects.toMatchObject({
      code: 'store_unwritable',
    });
    harness.failingWrites.clear();
    await expectUsable(harness);
    expect(await other.refresh()).toBe(200);
  });

  describe('that is interrupted', () => {
    /** An import over a grant that waits for the portal's answer. */
    async function startHeld(token?: string) {
      const { harness, other } = await startPaired();
      const before = await tokenOf(harness);
      const response = harness.portal.hold('token');
      const imported = importTo(harness, token ?? other.refreshToken, { replace: true }).catch(
        (error: unknown) => error,
      );
      while (harness.refreshes === 0) await new Promise(setImmediate);
      expect(await tokenOf(harness)).toBe(before);
      return { harness, before, response, imported };
    }

    test.each([[], ['saveLogin']] as const)(
      'the former grant is back after a power cut, without a doubt, also if the disk was full (%s)',
      async (...failing) => {
        const { harness, before, response, imported } = await startHeld();
        for (const write of failing) harness.failingWrites.add(write);
        if (failing.length > 0) {
          response.resolve();
          expect(await imported).toMatchObject({ name: 'cloud' });
          expect(await tokenOf(harness)).not.toBe(before);
        }
        await harness.crash();
        response.resolve();
        await imported;
        harness.failingWrites.clear();
        await harness.start();
        expect([stateOf(harness), await tokenOf(harness)]).toEqual(['active', before]);
        await expectUsable(harness);
      },
    );

    test('the former grant stays if its attempt cannot be ended on a full disk', async () => {
      const { harness } = await startPaired();
      const before = await tokenOf(harness);
      harness.failingWrites.add('grants.endAttempt');
      await expect(importTo(harness, 'a-token-of-nobody', { replace: true })).rejects.toMatchObject(
        refusal('import_failed', /does not accept this refresh token/),
      );
      harness.failingWrites.clear();
      await harness.restart();
      expect([stateOf(harness), await tokenOf(harness)]).toEqual(['active', before]);
      await expectUsable(harness);
    });

    test('the former grant stays if the answer was lost, and the token can be imported again', async () => {
      const { harness, other } = await startPaired({ emulator: { refreshGraceTime: 3600 } });
      const before = await tokenOf(harness);
      harness.portal.fail('token', { kind: 'commit then drop' });
      const imported = () => importTo(harness, other.refreshToken, { replace: true });
      await expect(imported()).rejects.toMatchObject(
        refusal('import_failed', /answer was lost.*the connection cloud keeps the login that it had; import/),
      );
      expect([stateOf(harness), await tokenOf(harness)]).toEqual(['active', before]);
      await imported();
      expect(await tokenOf(harness)).not.toBe(before);
      await expectUsable(harness);
    });

    test('a refresh of the former grant that became due meanwhile is made when the import has failed', async () => {
      const { harness, response, imported } = await startHeld('a-token-of-nobody');
      harness.time.skip(55 * MINUTE);
      for (let turns = 0; turns < 20; turns++) await new Promise(setImmediate);
      expect(harness.refreshes).toBe(1);
      response.resolve();
      expect(await imported).toMatchObject({ code: 'import_failed' });
      await harness.untilRefreshed(10_000);
      expect([harness.refreshes, stateOf(harness)]).toEqual([2, 'active']);
    });
  });

  test('a refresh that ends while an import waits for it is not lost when the import is refused', async () => {
    const { harness } = await startPaired();
    const response = harness.portal.hold('token');
    const refreshed = harness.run.grants.refresh(harness.connection('cloud').id);
    while (harness.refreshes === 0) await new Promise(setImmediate);
    const imported = importTo(harness, 'a-token-of-nobody', { replace: true }).catch(({ code }) => code);
    for (let turns = 0; turns < 20; turns++) await new Promise(setImmediate);
    response.resolve();
    await refreshed;
    expect(await imported).toBe('import_failed');
    await expectUsable(harness);
  });

  test('a login during an import wins, and the import says so', async () => {
    const { harness, other } = await startPaired();
    const run = await harness.beginPairing('cloud');
    await harness.login(run);
    const response = harness.portal.hold('token');
    const imported = importTo(harness, other.refreshToken, { replace: true }).catch((error: unknown) => error);
    while (harness.refreshes === 0) await new Promise(setImmediate);
    for (let second = 0; second < 30 && run.isOpen; second++) {
      harness.time.skip(1000);
      for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setTimeout(resolve, 1));
    }
    expect(pairingResult(run.pairing.step)).toBe('paired');
    const paired = await tokenOf(harness);
    response.resolve();
    expect(await imported).toMatchObject(refusal('import_failed', /got another login meanwhile/));
    expect(await tokenOf(harness)).toBe(paired);
    await expectUsable(harness);
  });

  test('an import to a connection that is removed meanwhile fails, and leaves nothing behind', async () => {
    const { harness, other } = await startPaired();
    const { id } = harness.connection('cloud');
    const response = harness.portal.hold('token');
    const imported = importTo(harness, other.refreshToken, { replace: true }).catch((error: unknown) => error);
    while (harness.refreshes === 0) await new Promise(setImmediate);
    await administrationOf(harness).removeConnection('cloud', false);
    response.resolve();
    expect(await imported).toMatchObject(refusal('import_failed', /was removed/));
    expect(await harness.token(id)).toBe('not_paired');
    await harness.restart();
    expect([harness.run.connections.list(), await harness.run.store.grants.all()]).toEqual([[], []]);
  });
});
