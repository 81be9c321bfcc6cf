import { request } from 'undici';
import { describe, expect, test } from 'vitest';
import type { PairingRun } from '../../src/broker/pairings/pairing-run.ts';
import { parseStatefulResponse, type StatefulResponse } from '../../src/core/pairings/authorization-response.ts';
import type { DeviceLink, LoginLink, RedirectLink } from '../../src/core/portals/login-link.ts';
import type { EmulatorOptions } from '../../src/emulator/index.ts';
import { eventually } from '../support/hub-process.ts';
import { BrokerHarness, type BrokerHarnessOptions, pairingResult, UNKNOWN_BROWSER } from './broker-harness.ts';
import { administrationOf } from './broker-services.ts';

const CALLBACK = 'http://192.168.1.7:8480/callback';
const CLIENT = {
  id: '6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1a01',
  secret: 'the-secret-of-the-hub',
  redirectUris: [CALLBACK],
};

async function startHub(
  login: 'device' | 'redirect',
  emulator: EmulatorOptions = {},
  oauth2: BrokerHarnessOptions['oauth2'] = {},
) {
  const harness = await BrokerHarness.start({
    emulator: { clients: [CLIENT], autoLogin: true, ...emulator },
    oauth2: { login, redirectUri: CALLBACK, ...oauth2 },
  });
  await harness.addAppliance('wallbox');
  return { harness, run: await harness.beginPairing('wallbox') };
}

/** The newest link of a pairing; undefined if nobody can log in. */
function linkOf({ pairing: { step } }: PairingRun): LoginLink | undefined {
  return step.kind === 'waiting' ? step.link : undefined;
}

function deviceLinkOf(run: PairingRun): DeviceLink {
  const link = linkOf(run);
  if (link?.kind !== 'device') throw new Error(`there is no device code: ${run.pairing.step.kind}`);
  return link;
}

function redirectLinkOf(run: PairingRun): RedirectLink {
  const link = linkOf(run);
  if (link?.kind !== 'redirect') throw new Error(`there is no link: ${run.pairing.step.kind}`);
  return link;
}

/** Logs in through a link. @returns what the browser brings to the hub */
async function logIn({ authorizeUrl }: LoginLink): Promise<StatefulResponse> {
  const { headers } = await request(authorizeUrl);
  const response = parseStatefulResponse(new URL(String(headers['location'])).searchParams);
  if (response === null) throw new Error('there is no response');
  return response;
}

/** A person logs in through a link, and the browser brings the hub what follows. */
async function logInThrough({ run: { pairings } }: BrokerHarness, link: LoginLink) {
  return pairings.receive(await logIn(link), UNKNOWN_BROWSER);
}

describe('a login by device code', () => {
  test('a login by device code ends when a person has approved the code', async () => {
    const { harness, run } = await startHub('device');
    const { userCode } = deviceLinkOf(run);
    await harness.time.pass(20_000);
    expect(run.pairing.step.kind).toBe('waiting');
    await harness.emulator.approveDevice({ userCode, user: 'demo' });
    await harness.time.pass(10_000);
    expect(pairingResult(run.pairing.step)).toBe('paired');
    const token = await harness.token(harness.connection('wallbox').id);
    expect(await harness.whoami(token)).toBe(200);
    expect(harness.emulator.observations.fastPolls).toBe(0);
  });

  test('a login by device code ends as refused when the person denies it', async () => {
    const { harness, run } = await startHub('device');
    await harness.emulator.approveDevice({ userCode: deviceLinkOf(run).userCode, user: 'demo', deny: true });
    await harness.time.pass(10_000);
    expect(pairingResult(run.pairing.step)).toBe('refused_by_user');
  });

  test('a login by device code counts down to the end of its code, gets a fresh one then, and at last to its own end', async () => {
    const { harness, run } = await startHub('device', { deviceCodeLifetime: 300 });
    const shown = () => {
      const { status } = administrationOf(harness).getPairing(run.pairing.id);
      return status.event === 'waiting' ? [status.expiresIn, status.isRenewed] : [status.event];
    };
    const first = deviceLinkOf(run);
    expect(shown()).toEqual([expect.closeTo(300, -1), true]);
    await harness.time.pass(200_000);
    expect(shown()).toEqual([expect.closeTo(100, -1), true]);
    await harness.time.pass(120_000);
    const second = deviceLinkOf(run);
    expect(second.userCode).not.toBe(first.userCode);
    expect(shown()).toEqual([expect.closeTo(285, -2), true]);
    await harness.time.pass(300_000);
    // The next one outlives the pairing, which takes a quarter of an hour.
    expect(shown()).toEqual([expect.closeTo(280, -1), undefined]);
    await harness.emulator.approveDevice({ userCode: deviceLinkOf(run).userCode, user: 'demo' });
    await harness.time.pass(10_000);
    expect(pairingResult(run.pairing.step)).toBe('paired');
  });

  test('a login by device code polls less often after slow_down, also after a restart', async () => {
    const { harness, run } = await startHub('device', { deviceInterval: 9 });
    harness.portal.fail('token', {
      kind: 'answer',
      status: 400,
      body: '{"error":"slow_down"}',
    });
    await harness.time.pass(60_000);
    const pollsIn140 = async () => {
      const polls = harness.portal.requests('token').length;
      await harness.time.pass(140_000);
      return harness.portal.requests('token').length - polls;
    };
    // One in 14 s; without the response it would be one in 9 to 10 s.
    expect(await pollsIn140()).toBe(10);
    await harness.restart();
    expect(await pollsIn140()).toBe(10);
    const resumed = harness.run.pairings.get(run.pairing.id);
    expect(deviceLinkOf(resumed).interval).toBe(14_000);
    await harness.emulator.approveDevice({ userCode: deviceLinkOf(resumed).userCode, user: 'demo' });
    await harness.time.pass(15_000);
    expect(pairingResult(resumed.pairing.step)).toBe('paired');
  });

  test('a login by device code whose tokens were lost on the way gets a fresh code', async () => {
    const { harness, run } = await startHub('device');
    const { userCode } = deviceLinkOf(run);
    await harness.emulator.approveDevice({ userCode, user: 'demo' });
    harness.portal.fail('token', { kind: 'commit then drop' });
    await harness.time.pass(60_000);
    const fresh = deviceLinkOf(run);
    expect(fresh.userCode).not.toBe(userCode);
    await harness.emulator.approveDevice({ userCode: fresh.userCode, user: 'demo' });
    await harness.time.pass(15_000);
    expect(pairingResult(run.pairing.step)).toBe('paired');
  });

  test('a login by device code that was cancelled uses no code that is approved later', async () => {
    const { harness, run } = await startHub('device');
    const { userCode } = deviceLinkOf(run);
    await run.fail('cancelled');
    await harness.emulator.approveDevice({ userCode, user: 'demo' });
    await harness.time.pass(60_000);
    expect(harness.statusOf('wallbox').state).toBe('unpaired');
    expect(harness.emulator.grants()).toEqual([]);
  });
});

describe('a login by redirect', () => {
  test('a login by redirect ends with the code of its state, and a reload shows the same', async () => {
    const { harness, run } = await startHub('redirect');
    const response = await logIn(redirectLinkOf(run));
    const received = await harness.run.pairings.receive(response, UNKNOWN_BROWSER);
    expect(received).toMatchObject({ rejected: null, pairing: { id: run.pairing.id } });
    expect(pairingResult(run.pairing.step)).toBe('paired');
    expect(await harness.run.pairings.receive(response, UNKNOWN_BROWSER)).toMatchObject({ rejected: null });
    expect(harness.exchanges).toBe(1);
  });

  test('a login by redirect takes one answer of two at the same time', async () => {
    const { harness, run } = await startHub('redirect', { autoLogin: true });
    const link = redirectLinkOf(run);
    const [first, second] = [await logIn(link), await logIn(link)];
    const results = await Promise.all([first, second].map((one) => harness.run.pairings.receive(one, UNKNOWN_BROWSER)));
    expect(results.map((result) => result?.rejected)).toEqual([null, 'used']);
    expect(harness.exchanges).toBe(1);
    expect(pairingResult(run.pairing.step)).toBe('paired');
  });

  test('a login by redirect ignores a state that the hub did not issue, and exchanges no code of a pairing that was replaced', async () => {
    const { harness, run } = await startHub('redirect');
    const response = await logIn(redirectLinkOf(run));
    expect(await harness.run.pairings.receive({ ...response, state: 'x'.repeat(22) }, UNKNOWN_BROWSER)).toBeNull();
    const newer = await harness.beginPairing('wallbox');
    const received = await harness.run.pairings.receive(response, UNKNOWN_BROWSER);
    expect(pairingResult(received?.pairing.step ?? { kind: 'asking' })).toBe('replaced');
    expect(harness.exchanges).toBe(0);
    expect(newer.pairing.step.kind).toBe('waiting');
  });

  test('a login by redirect does not use the answer of another issuer, and takes the right one after it', async () => {
    const { harness, run } = await startHub('redirect', {}, { discovers: true });
    const { state, response } = await logIn(redirectLinkOf(run));
    if (response.kind !== 'code') throw new Error('there is no code');
    for (const issuer of ['https://evil.example', undefined]) {
      const { issuer: _own, ...rest } = response;
      const forged = { state, response: { ...rest, ...(issuer !== undefined && { issuer }) } };
      expect(await harness.run.pairings.receive(forged, UNKNOWN_BROWSER)).toMatchObject({ rejected: 'foreign_issuer' });
    }
    expect(harness.exchanges).toBe(0);
    expect(await harness.run.pairings.receive({ state, response }, UNKNOWN_BROWSER)).toMatchObject({ rejected: null });
    expect(pairingResult(run.pairing.step)).toBe('paired');
  });

  test('a login by redirect gets a fresh link when the portal refuses the code, and the former state is used up', async () => {
    const { harness, run } = await startHub('redirect');
    const former = redirectLinkOf(run);
    const response = await logIn(former);
    harness.portal.fail('token', { kind: 'answer', status: 400, body: '{"error":"invalid_grant"}' });
    await harness.run.pairings.receive(response, UNKNOWN_BROWSER);
    await harness.time.settle();
    const fresh = redirectLinkOf(run);
    expect(fresh.state).not.toBe(former.state);
    expect(await logInThrough(harness, former)).toMatchObject({
      rejected: 'used',
    });
    await logInThrough(harness, fresh);
    expect(pairingResult(run.pairing.step)).toBe('paired');
  });

  test('a login by redirect without a known issuer does not use the code of another configured portal', async () => {
    const { harness, run } = await startHub('redirect');
    const { state, response } = await logIn(redirectLinkOf(run));
    const identity = { origin: harness.portal.frontendUrl, clientId: harness.emulator.clientId };
    await harness.stop();
    harness.identity = { ...identity, otherOrigins: ['https://other.example'] };
    await harness.start();
    const receive = (issuer: string) =>
      harness.run.pairings.receive({ state, response: { ...response, issuer } as typeof response }, UNKNOWN_BROWSER);
    expect(await receive('https://other.example')).toMatchObject({ rejected: 'foreign_issuer' });
    expect(harness.exchanges).toBe(0);
    expect(await receive('https://portal.example')).toMatchObject({ rejected: null });
    expect(harness.statusOf('wallbox').state).toBe('active');
  });

  test.each([
    ['access_denied', 'refused_by_user'],
    ['invalid_scope', 'portal_rejected'],
    ['<script>', 'portal_rejected'],
  ])(
    'a login by redirect ends with the error %s as %s if the hub sent the browser, or a person pasted it',
    async (error, reason) => {
      const { harness, run } = await startHub('redirect');
      const stateful = { state: redirectLinkOf(run).state, response: { kind: 'error', error } } as const;
      // Anybody who saw the link knows its state.
      for (const token of [null, 'x'.repeat(43)])
        await harness.run.pairings.receive(stateful, { ...UNKNOWN_BROWSER, browserToken: token });
      expect(run.pairing).toMatchObject({ step: { kind: 'waiting' }, lastFailure: reason });
      const browserToken = harness.run.pairings.browserToken(run.pairing.id).reveal();
      await harness.run.pairings.receive(stateful, { ...UNKNOWN_BROWSER, browserToken });
      expect(pairingResult(run.pairing.step)).toBe(reason);
      const next = await harness.beginPairing('wallbox');
      const pasted = { ...stateful, state: redirectLinkOf(next).state };
      await harness.run.pairings.receive(pasted, null, next.pairing.id);
      expect(pairingResult(next.pairing.step)).toBe(reason);
      expect(harness.journal.join('')).not.toContain('<script>');
    },
  );

  test("a login by redirect that ends with invalid_scope names the scope and the portal's own words, if they are its own", async () => {
    const { harness, run } = await startHub('redirect');
    const query = {
      error: 'invalid_scope',
      error_description: 'Unknown: home.control',
      state: redirectLinkOf(run).state,
    };
    const stateful = parseStatefulResponse(new URLSearchParams(query)) ?? expect.fail();
    await harness.run.pairings.receive(stateful, UNKNOWN_BROWSER);
    expect(run.pairing).toMatchObject({ failureDetail: 'invalid_scope' });
    const browserToken = harness.run.pairings.browserToken(run.pairing.id).reveal();
    await harness.run.pairings.receive(stateful, { ...UNKNOWN_BROWSER, browserToken });
    expect(harness.statusOf('wallbox').pairingFailed?.message).toBe(
      'the portal rejected the hub\'s request: invalid_scope (Unknown: home.control); correct the scope of wallbox to one that the portal knows, and run "latchkey pair wallbox" again',
    );
    await harness.restart();
    expect(harness.run.pairings.newestFor(run.pairing.connection)?.pairing).toMatchObject({
      failureDetail: 'invalid_scope (Unknown: home.control)',
    });
  });

  test('a login by redirect takes a pasted address only for the pairing that it belongs to', async () => {
    const { harness, run } = await startHub('redirect');
    await harness.addAppliance('dishwasher');
    const other = await harness.beginPairing('dishwasher');
    const response = await logIn(redirectLinkOf(run));
    expect(await harness.run.pairings.receive(response, null, other.pairing.id)).toMatchObject({
      rejected: 'other_pairing',
      pairing: { id: run.pairing.id },
    });
    expect(harness.exchanges).toBe(0);
    expect(await harness.run.pairings.receive(response, null, run.pairing.id)).toMatchObject({
      rejected: null,
    });
    expect(pairingResult(run.pairing.step)).toBe('paired');
  });
});

test('a login by a code at a portal without that endpoint fails at once, and names the keys to correct', async () => {
  const endpoints = { authorization: null, token: 'http://127.0.0.1:9/t', deviceAuthorization: null, revocation: null };
  const harness = await BrokerHarness.start({ oauth2: { login: 'device', endpoints } });
  await harness.addAppliance('wallbox');
  expect(pairingResult((await harness.beginPairing('wallbox')).pairing.step)).toBe('portal_rejected');
  expect(harness.statusOf('wallbox').pairingFailed?.message).toContain(
    'no device authorization endpoint: add portals.cloud.device_authorization_endpoint, or set portals.cloud.login = "redirect"',
  );
});

describe('requests that wait for their turn at a portal', () => {
  /** Two logins at a portal that is asked every 20 s at most; the second one waits. */
  async function startWaiting() {
    const { harness, run } = await startHub('redirect', {}, { minRequestInterval: 20_000 });
    await logInThrough(harness, redirectLinkOf(run));
    await harness.addAppliance('heater');
    const second = await harness.beginPairing('heater');
    const response = await logIn(redirectLinkOf(second));
    void harness.run.pairings.receive(response, UNKNOWN_BROWSER);
    await harness.time.pass(1000);
    const [wallbox, heater] = [harness.connection('wallbox').id, harness.connection('heater').id];
    const requests = () => harness.portal.requests('token').length;
    return { harness, wallbox, heater, second, requests };
  }

  test.each(['crash', 'stop'] as const)('a %s of the hub meanwhile loses nothing', async (how) => {
    const { harness, wallbox, second, requests } = await startWaiting();
    const refreshed = harness.run.grants.refresh(wallbox);
    await harness.time.pass(1000);
    expect([second.pairing.step.kind, requests()]).toEqual(['exchanging', 1]);
    // Time does not pass here: a stop does not wait for a turn.
    await harness[how]();
    if (how === 'stop') await refreshed;
    await harness.start();
    expect(harness.events.filter(({ event }) => event === 'refresh_interrupted')).toEqual([]);
    expect(harness.statusOf('wallbox')).toMatchObject({ state: 'active', problem: null });
    const resumed = harness.run.pairings.newestFor(harness.connection('heater').id);
    expect(resumed?.pairing.step.kind).toBe('waiting');
    expect(requests()).toBe(1);
  });

  test('they are sent when their turn has come', async () => {
    const { harness, wallbox, second, requests } = await startWaiting();
    const refreshed = harness.run.grants.refresh(wallbox);
    const passed = async (seconds: number, isDone: () => boolean) => {
      await harness.time.pass(seconds * 1000);
      await eventually(async () => {
        await harness.time.pass(50);
        return isDone();
      });
    };
    await passed(20, () => pairingResult(second.pairing.step) === 'paired');
    expect(requests()).toBe(2);
    await passed(20, () => harness.run.grants.get(wallbox)?.grant.generation === 2);
    await refreshed;
    expect(requests()).toBe(3);
  });
});

describe('tokens that come for a connection without a grant', () => {
  const revoked = ({ events }: BrokerHarness) => events.filter(({ event }) => event === 'grant_revoked').length;
  const liveGrants = ({ emulator }: BrokerHarness) => emulator.grants().filter((grant) => !grant.revoked).length;

  test.each(['unpaired', 'removed'] as const)('those of a refresh are revoked if it was %s meanwhile', async (how) => {
    const { harness, run } = await startHub('redirect');
    await logInThrough(harness, redirectLinkOf(run));
    const response = harness.portal.hold('token');
    const refreshed = harness.run.grants.refresh(harness.connection('wallbox').id);
    while (harness.portal.requests('token').length < 2) await new Promise(setImmediate);
    const administration = administrationOf(harness);
    expect(
      await (how === 'unpaired' ? administration.unpair('wallbox') : administration.removeAppliance('wallbox')),
    ).toBe(true);
    expect(revoked(harness)).toBe(1);
    response.resolve();
    await refreshed;
    expect([revoked(harness), liveGrants(harness)]).toEqual([2, 0]);
  });

  test('the newest are revoked if a refresh ends while the grant is being deleted', async () => {
    const { harness, run } = await startHub('redirect');
    await logInThrough(harness, redirectLinkOf(run));
    const { id } = harness.connection('wallbox');
    const response = harness.portal.hold('token');
    const refreshed = harness.run.grants.refresh(id);
    while (harness.portal.requests('token').length < 2) await new Promise(setImmediate);
    const deletes = harness.holdWrites('grants.forget');
    const unpaired = administrationOf(harness).unpair('wallbox');
    response.resolve();
    await refreshed;
    deletes.resolve();
    await unpaired;
    expect([await harness.run.store.grants.get(id), revoked(harness), liveGrants(harness)]).toEqual([null, 1, 0]);
  });

  test('a grant that is deleted during a new login is revoked all the same, and so is what that login brings', async () => {
    const { harness, run } = await startHub('redirect');
    await logInThrough(harness, redirectLinkOf(run));
    const again = await harness.run.pairings.begin(harness.connection('wallbox'));
    while (linkOf(again) === undefined) await new Promise(setImmediate);
    const response = harness.portal.hold('token');
    const received = logInThrough(harness, redirectLinkOf(again));
    while (harness.portal.requests('token').length < 2) await new Promise(setImmediate);
    expect(await administrationOf(harness).unpair('wallbox')).toBe(true);
    response.resolve();
    await received;
    await eventually(async () => liveGrants(harness) === 0);
  });

  test('those of a refresh that a new login has overtaken are not revoked: they are of the same account', async () => {
    const { harness, run } = await startHub('redirect');
    await logInThrough(harness, redirectLinkOf(run));
    const { id } = harness.connection('wallbox');
    const { store, grants } = harness.run;
    const grant = grants.get(id)?.grant ?? expect.fail();
    const [isReading, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    // Another write was faster.
    store.grants.replace = async () => false;
    let reads = 0;
    store.grants.find = async () => {
      // After the write it is read whether that can be repeated, and then what there is.
      if (++reads === 2) isReading.resolve();
      if (reads > 1) await goOn.promise;
      return new Map();
    };
    const refreshed = grants.refresh(id);
    await isReading.promise;
    grants.replace({ ...grant, generation: 2 });
    goOn.resolve();
    await refreshed;
    await harness.time.settle();
    expect([revoked(harness), liveGrants(harness)]).toEqual([0, 1]);
  });

  test('those of a refresh are not revoked while a new login is being stored, which the portal could end too', async () => {
    const { harness, run } = await startHub('redirect');
    await logInThrough(harness, redirectLinkOf(run));
    const response = harness.portal.hold('token');
    const refreshed = harness.run.grants.refresh(harness.connection('wallbox').id);
    while (harness.portal.requests('token').length < 2) await new Promise(setImmediate);
    await administrationOf(harness).unpair('wallbox');
    expect(revoked(harness)).toBe(1);
    const again = await harness.run.pairings.begin(harness.connection('wallbox'));
    while (linkOf(again) === undefined) await new Promise(setImmediate);
    const stored = harness.holdWrites('saveLogin');
    const received = logInThrough(harness, redirectLinkOf(again));
    // The first login, its refresh, the revocation, and the second login.
    while (harness.portal.requests('token').length < 4) await new Promise(setImmediate);
    response.resolve();
    await refreshed;
    stored.resolve();
    await received;
    await harness.time.settle();
    expect([pairingResult(again.pairing.step), revoked(harness)]).toEqual(['paired', 1]);
  });

  test.each(['unpaired', 'removed'] as const)('those of a login are revoked if it was %s meanwhile', async (how) => {
    const { harness, run } = await startHub('redirect');
    const response = harness.portal.hold('token');
    const received = logInThrough(harness, redirectLinkOf(run));
    while (harness.portal.requests('token').length < 1) await new Promise(setImmediate);
    const administration = administrationOf(harness);
    await (how === 'unpaired' ? administration.unpair('wallbox') : administration.removeAppliance('wallbox'));
    response.resolve();
    await received;
    await eventually(async () => revoked(harness) === 1);
    expect(liveGrants(harness)).toBe(0);
  });

  test('a login that completes while its connection is removed ends as cancelled', async () => {
    const { harness, run } = await startHub('redirect');
    const completes = harness.holdWrites('saveLogin');
    const received = logInThrough(harness, redirectLinkOf(run));
    while (liveGrants(harness) === 0) await new Promise(setImmediate);
    await harness.run.store.registry.save({
      removedAppliances: [harness.connection('wallbox').id],
      removedConnections: [harness.connection('wallbox').id],
    });
    completes.resolve();
    await received;
    expect([pairingResult(run.pairing.step), revoked(harness), liveGrants(harness)]).toEqual(['cancelled', 1, 0]);
    expect(harness.events.map(({ event }) => event)).not.toContain('store_unwritable');
  });
});
