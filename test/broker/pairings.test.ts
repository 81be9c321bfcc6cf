import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { PairingRun } from '../../src/broker/pairings/pairing-run.ts';
import type { CallbackBrowser } from '../../src/core/lan-service.ts';
import { Secret } from '../../src/core/secret.ts';
import { rememberSecrets } from '../support/logs.ts';
import { BrokerHarness, type BrokerHarnessOptions, pairingResult, UNKNOWN_BROWSER } from './broker-harness.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const REDIRECT: BrokerHarnessOptions = { redirect: (nonce) => `http://192.168.1.7:8480/callback/${nonce}` };

const stateOf = (run: PairingRun) => pairingResult(run.pairing.step);

/** A home with an appliance, and its pairing begun. */
async function begun(options: BrokerHarnessOptions = {}) {
  const home = await BrokerHarness.start(options);
  const { appliance } = await home.addAppliance('wallbox');
  return { home, id: appliance.id, run: await home.beginPairing('wallbox') };
}

/** Brings to the hub what the portal's redirect carries. */
function follow(home: BrokerHarness, location: string, from: CallbackBrowser = UNKNOWN_BROWSER) {
  const url = new URL(location);
  const nonce = url.pathname.split('/').at(-1) ?? '';
  const code = url.searchParams.get('code');
  const error = url.searchParams.get('error');
  if (code !== null) return home.run.pairings.receiveCallback(nonce, { kind: 'code', code: new Secret(code) }, from);
  return home.run.pairings.receiveCallback(
    nonce,
    error === null ? { kind: 'nothing' } : { kind: 'error', error },
    UNKNOWN_BROWSER,
  );
}

/** A browser that the hub itself has sent to the portal: its code counts though the portal can't be asked for it. */
function sentBy({ run: { pairings } }: BrokerHarness, { pairing }: PairingRun): CallbackBrowser {
  return { ...UNKNOWN_BROWSER, browserBinding: pairings.browserToken(pairing.id).reveal() };
}

/** The codes that were sent to the token endpoint. */
function codesSent(home: BrokerHarness): string[] {
  return home.portal
    .requests('token')
    .map(({ form }) => form.get('code'))
    .filter((code) => code !== null);
}

function expectNoCodeTwice(home: BrokerHarness): void {
  expect(new Set(codesSent(home)).size).toBe(codesSent(home).length);
  expect(home.emulator.observations.codesRepeated).toBe(0);
}

describe('pairing by polling', () => {
  test('polling notices a login, the hub exchanges the code once, and polling stops', async () => {
    const { home, id, run } = await begun();
    await using _ = home;
    expect(stateOf(run)).toBe('waiting');
    await home.time.pass(60 * SECOND);
    await home.login(run);
    await home.time.pass(10 * SECOND);
    expect(run.pairing.step).toEqual({ kind: 'ended', result: { kind: 'paired', scope: 'Monitoring' } });
    const polls = home.portal.requests('code').length;
    await home.time.pass(10 * MINUTE);
    expect(home.portal.requests('code')).toHaveLength(polls);
    expect(home.exchanges).toBe(1);
    expect(await home.whoami(await home.token(id))).toBe(200);
    expect(home.portal.requests('token')[0]?.form.get('scope')).toBe('Monitoring');
  });

  test.each([0, 0.5, 0.999])('the polls of a pairing are 5 to 10 s apart (jitter %d)', async (fraction) => {
    const { home, run } = await begun({ fraction });
    await using _ = home;
    const { step } = run.pairing;
    const state = new URL(step.kind === 'waiting' ? step.link.codeUrl : '').searchParams.get('state') ?? '';
    await home.time.pass(5 * MINUTE);
    const times = home.emulator.polls(state).map(({ at }) => at);
    const gaps = times.slice(1).map((at, index) => at - (times[index] ?? 0));
    expect(gaps.length).toBeGreaterThan(29);
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(5 * SECOND);
    expect(Math.max(...gaps)).toBeLessThanOrEqual(10 * SECOND);
  });

  test('an unreachable portal is polled less often, but often enough not to miss a code', async () => {
    const { home, run } = await begun({ fraction: 0.999 });
    await using _ = home;
    home.portal.fail('code', ...Array(1000).fill({ kind: 'answer', status: 500 } as const));
    await home.time.pass(5 * MINUTE);
    expect(home.portal.requests('code').length).toBeLessThan(20);
    expect(home.portal.requests('code').length).toBeGreaterThan(14);
    expect(run.portalProblem).toBe('HTTP 500');
    expect(home.events.filter(({ event }) => event === 'portal_unreachable')).toHaveLength(1);
  });

  test("polling waits as long as the portal's Retry-After says", async () => {
    const { home } = await begun();
    await using _ = home;
    home.portal.fail('code', { kind: 'answer', status: 429, headers: { 'retry-after': '60' } });
    await home.time.pass(60 * SECOND);
    expect(home.portal.requests('code')).toHaveLength(1);
    await home.time.pass(20 * SECOND);
    expect(home.portal.requests('code').length).toBeGreaterThan(1);
  });

  test('a pairing survives a network outage of two minutes and succeeds by polling', async () => {
    const { home, run } = await begun();
    await using _ = home;
    await home.portal.disconnect();
    await home.time.pass(2 * MINUTE);
    expect(stateOf(run)).toBe('waiting');
    await home.portal.reconnect();
    await home.login(run);
    await home.time.pass(30 * SECOND);
    expect(stateOf(run)).toBe('paired');
  });
});

describe('pairing by redirect', () => {
  test('a code that the browser brings is exchanged at once, and polling stops', async () => {
    const { home, id, run } = await begun(REDIRECT);
    await using _ = home;
    expect(home.portal.requests('config')[0]?.query.get('redirect_url')).toBe(
      `http://192.168.1.7:8480/callback/${run.pairing.nonce}`,
    );
    const pairing = await follow(home, await home.login(run));
    expect(pairing?.step).toMatchObject({ kind: 'ended', result: { kind: 'paired' } });
    await home.time.pass(5 * MINUTE);
    expect(home.portal.requests('code')).toHaveLength(1);
    expect(home.exchanges).toBe(1);
    expect(await home.whoami(await home.token(id))).toBe(200);
  });

  test('polling completes a pairing with a redirect whose browser does not reach the hub', async () => {
    const { home, run } = await begun(REDIRECT);
    await using _ = home;
    await home.login(run);
    await home.time.pass(10 * SECOND);
    expect(stateOf(run)).toBe('paired');
  });

  test('reloading the result page of a pairing does not send its code again', async () => {
    const { home, run } = await begun(REDIRECT);
    await using _ = home;
    const location = await home.login(run);
    await follow(home, location);
    const again = await follow(home, location);
    expect(again?.step).toMatchObject({ kind: 'ended', result: { kind: 'paired' } });
    expect(home.exchanges).toBe(1);
  });

  test('a code that arrives by redirect and by polling at the same moment is exchanged once', async () => {
    const { home, run } = await begun(REDIRECT);
    await using _ = home;
    const location = await home.login(run);
    await Promise.all([follow(home, location), home.time.pass(10 * SECOND), follow(home, location)]);
    expect(stateOf(run)).toBe('paired');
    expect(home.exchanges).toBe(1);
  });

  test('a callback with an unknown nonce is ignored', async () => {
    const { home, run } = await begun(REDIRECT);
    await using _ = home;
    const planted = new Secret('a-code-of-a-stranger');
    for (const nonce of [
      '',
      'x',
      run.pairing.nonce.slice(1),
      `${run.pairing.nonce}x`,
      run.pairing.nonce.toLowerCase(),
    ]) {
      if (nonce === run.pairing.nonce) continue;
      expect(
        await home.run.pairings.receiveCallback(nonce, { kind: 'code', code: planted }, UNKNOWN_BROWSER),
      ).toBeNull();
    }
    expect(home.exchanges).toBe(0);
    expect(stateOf(run)).toBe('waiting');
  });

  test('a callback with neither code nor error changes nothing', async () => {
    const { home, run } = await begun(REDIRECT);
    await using _ = home;
    expect(await home.run.pairings.receiveCallback(run.pairing.nonce, { kind: 'nothing' }, UNKNOWN_BROWSER)).toBe(
      run.pairing,
    );
    expect(stateOf(run)).toBe('waiting');
  });

  test('a pairing ends as refused_by_user when the person refuses at the portal', async () => {
    const { home, run } = await begun(REDIRECT);
    await using _ = home;
    await follow(home, await home.login(run, true));
    expect(stateOf(run)).toBe('refused_by_user');
    expect(await home.run.store.pairings()).toMatchObject([{ step: { result: { reason: 'refused_by_user' } } }]);
  });

  test('a portal that rejects the redirect address is asked again without it, and polled', async () => {
    const id = '6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1a01';
    const clients = [{ id, secret: 'a-secret-that-no-log-may-hold', redirectUrl: 'refuse' as const }];
    const { home, run } = await begun({ ...REDIRECT, emulator: { clients } });
    await using _ = home;
    expect(home.portal.requests('config').map(({ query }) => query.has('redirect_url'))).toEqual([true, false]);
    await home.login(run);
    await home.time.pass(10 * SECOND);
    expect(stateOf(run)).toBe('paired');
  });

  test.each([408, 429, 503])(
    'HTTP %d is not a rejection of the redirect address, and the hub asks for a link with it again',
    async (status) => {
      await using home = await BrokerHarness.start(REDIRECT);
      await home.addAppliance('wallbox');
      home.portal.fail('config', { kind: 'answer', status });
      const run = await home.beginPairing('wallbox');
      expect(stateOf(run)).toBe('asking');
      expect(run.portalProblem).toBe(`HTTP ${status}`);
      await home.time.pass(10 * SECOND);
      expect(stateOf(run)).toBe('waiting');
      expect(run.portalProblem).toBeNull();
      expect(home.portal.requests('config').map(({ query }) => query.has('redirect_url'))).toEqual([true, true]);
    },
  );
});

describe('end of a pairing', () => {
  test('a cancelled pairing ends, and a later login changes nothing', async () => {
    const { home, id, run } = await begun(REDIRECT);
    await using _ = home;
    const location = await home.login(run);
    await home.run.pairings.end(id, 'cancelled');
    expect((await follow(home, location))?.step).toMatchObject({ result: { reason: 'cancelled' } });
    await home.time.pass(MINUTE);
    expect(home.exchanges).toBe(0);
    expect(await home.token(id)).toBe('not_paired');
  });

  test('a pairing ends as replaced when another one begins for its appliance', async () => {
    const { home, id, run } = await begun(REDIRECT);
    await using _ = home;
    const old = await home.login(run);
    const second = await home.beginPairing('wallbox');
    expect(stateOf(run)).toBe('replaced');
    expect((await follow(home, old))?.step).toMatchObject({ result: { reason: 'replaced' } });
    expect(home.exchanges).toBe(0);
    expect(home.run.pairings.newestFor(id)).toBe(second);
    await follow(home, await home.login(second));
    expect(stateOf(second)).toBe('paired');
  });

  test('only one pairing stays open when several begin for one appliance at the same moment', async () => {
    await using home = await BrokerHarness.start();
    const { appliance } = await home.addAppliance('wallbox');
    const runs = await Promise.all([1, 2, 3].map(() => home.run.pairings.begin(appliance)));
    await home.time.settle();
    expect(runs.map(stateOf).sort()).toEqual(['replaced', 'replaced', 'waiting']);
    expect(stateOf(home.run.pairings.newestFor(appliance.id) ?? there())).toBe('waiting');
  });

  test('a pairing stays open when the next one for its appliance cannot be saved', async () => {
    const { home, run } = await begun();
    await using _ = home;
    home.failingWrites.add('savePairing');
    await expect(home.beginPairing('wallbox')).rejects.toMatchObject({ code: 'store_unwritable' });
    home.failingWrites.clear();
    await home.login(run);
    await home.time.pass(10 * SECOND);
    expect(stateOf(run)).toBe('paired');
  });

  test('a pairing ends when the portal rejects it', async () => {
    await using home = await BrokerHarness.start();
    await home.addAppliance('wallbox');
    home.portal.fail('config', { kind: 'answer', status: 403 });
    expect(stateOf(await home.beginPairing('wallbox'))).toBe('portal_rejected');
  });

  test('a pairing ends when the portal does not know the client_id', async () => {
    await using home = await BrokerHarness.start();
    await home.addAppliance('wallbox');
    home.portal.fail('config', { kind: 'answer', status: 404 });
    expect(stateOf(await home.beginPairing('wallbox'))).toBe('client_unknown');
  });

  test('a pairing ends when the portal names a token URL of another origin, and no request goes there', async () => {
    await using home = await BrokerHarness.start();
    await home.addAppliance('wallbox');
    const foreign = (body: string) => body.replace(/http:[^"]*sso\\?\/token/, 'https://evil.example/sso/token');
    home.portal.fail('config', { kind: 'alter', with: foreign });
    const run = await home.beginPairing('wallbox');
    expect(stateOf(run)).toBe('foreign_origin');
    await home.time.pass(MINUTE);
    expect(home.exchanges).toBe(0);
  });

  test('a pairing ends when its portal is no longer configured', async () => {
    await using home = await BrokerHarness.start();
    await home.addAppliance('wallbox');
    home.configured = false;
    expect(stateOf(await home.beginPairing('wallbox'))).toBe('misconfigured');
  });

  test("a pairing ends as misconfigured when the portal rejects the hub's client credentials", async () => {
    const { home, run } = await begun();
    await using _ = home;
    home.portal.fail('token', { kind: 'answer', status: 401, body: '{"error":"invalid_client"}' });
    await home.login(run);
    await home.time.pass(10 * SECOND);
    expect(stateOf(run)).toBe('misconfigured');
  });

  test('a pairing ends when the portal issues no refresh token', async () => {
    const { home, id, run } = await begun();
    await using _ = home;
    home.portal.fail('token', { kind: 'alter', with: (body) => body.replace('refresh_token', 'x') });
    await home.login(run);
    await home.time.pass(10 * SECOND);
    expect(stateOf(run)).toBe('portal_rejected');
    expect(await home.token(id)).toBe('not_paired');
  });
});

describe('authorization code', () => {
  test('a pairing continues after the portal refused a code, and succeeds with the next one', async () => {
    const { home, run } = await begun(REDIRECT);
    await using _ = home;
    const code = new Secret('a-code-of-nobody');
    const { nonce } = run.pairing;
    const received = home.run.pairings.receiveCallback(nonce, { kind: 'code', code }, sentBy(home, run));
    await Promise.all([received, home.time.pass(4 * SECOND)]);
    expect(stateOf(run)).toBe('waiting');
    await home.login(run);
    await home.time.pass(10 * SECOND);
    expect(stateOf(run)).toBe('paired');
    expect(home.exchanges).toBe(2);
    expectNoCodeTwice(home);
  });

  test('a refused code is not sent again, and the expired pairing ends as code_refused', async () => {
    const { home, run } = await begun();
    await using _ = home;
    home.portal.fail('token', { kind: 'answer', status: 400, body: '{"error":"invalid_grant"}' });
    await home.login(run);
    await home.time.pass(40 * SECOND);
    expect(home.exchanges).toBe(1);
    expect(stateOf(run)).toBe('waiting');
    await home.time.pass(15 * MINUTE);
    expect(stateOf(run)).toBe('code_refused');
    expectNoCodeTwice(home);
  });

  test.each(['drop', 'commit then drop', 'truncate'] as const)(
    'a lost answer to a code exchange (%s) brings a fresh link, and the code is not sent again',
    async (kind) => {
      const { home, id, run } = await begun({ ...REDIRECT, emulator: { codeUrlAfterExchange: 'served' } });
      await using _ = home;
      home.portal.fail('token', { kind });
      const location = await home.login(run);
      await follow(home, location);
      await home.time.settle();
      expect(stateOf(run)).toBe('waiting');
      expect(home.portal.requests('config')).toHaveLength(2);
      await follow(home, location);
      await home.time.pass(30 * SECOND);
      expect(home.exchanges).toBe(1);
      await follow(home, await home.login(run));
      expect(stateOf(run)).toBe('paired');
      expect(await home.whoami(await home.token(id))).toBe(200);
      expectNoCodeTwice(home);
    },
  );

  test('a code that could not be sent is sent again while it is valid', async () => {
    const { home, run } = await begun(REDIRECT);
    await using _ = home;
    const location = await home.login(run);
    await home.portal.disconnect();
    const received = follow(home, location, sentBy(home, run));
    await home.time.pass(5 * SECOND);
    expect(stateOf(run)).toBe('exchanging');
    await home.portal.reconnect();
    await home.time.pass(10 * SECOND);
    await received;
    expect(stateOf(run)).toBe('paired');
    expect(home.exchanges).toBe(1);
  });

  test('a code that could not be sent within its lifetime is dropped, and the same link can be used again', async () => {
    const { home, run } = await begun(REDIRECT);
    await using _ = home;
    const location = await home.login(run);
    await home.portal.disconnect();
    void follow(home, location, sentBy(home, run));
    await home.time.pass(5 * SECOND);
    expect(stateOf(run)).toBe('exchanging');
    await home.time.pass(65 * SECOND);
    expect(stateOf(run)).toBe('waiting');
    await home.portal.reconnect();
    await follow(home, await home.login(run));
    expect(stateOf(run)).toBe('paired');
  });

  test('a code exchange that the portal defers is sent again after the Retry-After time', async () => {
    const { home, run } = await begun(REDIRECT);
    await using _ = home;
    home.portal.fail('token', { kind: 'answer', status: 503, headers: { 'retry-after': '8' } });
    const received = follow(home, await home.login(run));
    await home.time.pass(7 * SECOND);
    expect(home.exchanges).toBe(1);
    await home.time.pass(2 * SECOND);
    await received;
    expect(stateOf(run)).toBe('paired');
    expect(home.exchanges).toBe(2);
  });

  test('a code is written ahead before it is sent', async () => {
    const { home, run } = await begun(REDIRECT);
    await using _ = home;
    const disk = Promise.withResolvers<void>();
    home.delayedWrites.set('savePairing', disk.promise);
    const received = follow(home, await home.login(run));
    await expect.poll(() => stateOf(run)).toBe('exchanging');
    await sleep(30);
    expect(home.exchanges).toBe(0);
    disk.resolve();
    await received;
    expect(stateOf(run)).toBe('paired');
  });

  test('a code that cannot be written ahead is not sent, and the next poll tries again', async () => {
    const { home, run } = await begun();
    await using _ = home;
    home.failingWrites.add('savePairing');
    await home.login(run);
    await home.time.pass(10 * SECOND);
    expect(home.exchanges).toBe(0);
    home.failingWrites.clear();
    await home.time.pass(10 * SECOND);
    expect(stateOf(run)).toBe('paired');
    expect(home.exchanges).toBe(1);
  });
});

describe('pairing that ends during its code exchange', () => {
  test('a pairing that is cancelled while its code is written ahead stays cancelled, and the code is not sent', async () => {
    const { home, id, run } = await begun(REDIRECT);
    await using _ = home;
    const location = await home.login(run);
    const disk = Promise.withResolvers<void>();
    home.delayedWrites.set('savePairing', disk.promise);
    const received = follow(home, location);
    await expect.poll(() => stateOf(run)).toBe('exchanging');
    // The write of the end would be quicker.
    home.delayedWrites.delete('savePairing');
    const ended = home.run.pairings.end(id, 'cancelled');
    await sleep(30);
    disk.resolve();
    await Promise.all([received, ended]);
    expect(stateOf(run)).toBe('cancelled');
    expect(home.exchanges).toBe(0);
    expect(await home.run.store.pairings()).toMatchObject([{ step: { result: { reason: 'cancelled' } } }]);
  });

  test('the tokens of a pairing that was cancelled during its code exchange are discarded', async () => {
    const { home, id, run } = await begun(REDIRECT);
    await using _ = home;
    const answer = Promise.withResolvers<void>();
    home.portal.fail('token', { kind: 'wait', until: answer.promise });
    const received = follow(home, await home.login(run));
    await expect.poll(() => home.emulator.grants().length).toBe(1);
    await home.run.pairings.end(id, 'cancelled');
    answer.resolve();
    await received;
    expect(stateOf(run)).toBe('cancelled');
    expect(await home.token(id)).toBe('not_paired');
    expect(await home.run.store.grants()).toEqual([]);
  });

  test.each(['generation', 'completePairing'] as const)(
    'memory and store agree when a pairing is cancelled while its grant is being saved (%s)',
    async (step) => {
      const { home, id, run } = await begun(REDIRECT);
      await using _ = home;
      const disk = Promise.withResolvers<void>();
      home.delayedWrites.set(step, disk.promise);
      const received = follow(home, await home.login(run));
      await expect.poll(() => home.emulator.grants().length).toBe(1);
      await sleep(30);
      const ended = home.run.pairings.end(id, 'cancelled');
      disk.resolve();
      await Promise.all([received, ended]);
      await home.time.settle();
      const paired = stateOf(run) === 'paired';
      expect((await home.token(id)) === 'not_paired').toBe(!paired);
      expect(await home.run.store.grants()).toHaveLength(paired ? 1 : 0);
      expect((await home.run.store.pairings()).map((pairing) => pairingResult(pairing.step))).toEqual([stateOf(run)]);
    },
  );
});

describe('new pairing of an active appliance', () => {
  test('an active appliance keeps its grant until a new pairing brings another one', async () => {
    await using home = await BrokerHarness.start();
    const id = await home.addPairedAppliance();
    const token = await home.token(id);
    const run = await home.beginPairing('wallbox');
    expect(await home.token(id)).toBe(token);
    await home.run.pairings.end(id, 'cancelled');
    expect(await home.token(id)).toBe(token);
    const second = await home.beginPairing('wallbox');
    await home.login(second);
    await home.time.pass(10 * SECOND);
    expect(stateOf(run)).toBe('cancelled');
    expect(await home.token(id)).not.toBe(token);
    expect(await home.run.store.generation(id)).toBe(2);
  });

  test('a new grant replaces the old one even if the old one is refreshed at the same moment', async () => {
    await using home = await BrokerHarness.start(REDIRECT);
    const id = await home.addPairedAppliance();
    const run = await home.beginPairing('wallbox');
    const location = await home.login(run);
    const disk = Promise.withResolvers<void>();
    home.delayedWrites.set('completePairing', disk.promise);
    const received = follow(home, location);
    await expect.poll(() => home.emulator.grants().length).toBe(2);
    await sleep(30);
    await home.run.grants.refresh(id);
    expect(await home.run.store.generation(id)).toBe(2);
    disk.resolve();
    await received;
    expect(stateOf(run)).toBe('paired');
    expect(await home.run.store.generation(id)).toBe(3);
    expect((await home.run.store.grant(id))?.grant.accessToken.reveal()).toBe(await home.token(id));
    expectNoCodeTwice(home);
  });

  test('a new grant that cannot be saved is used from memory and saved later', async () => {
    const { home, id, run } = await begun(REDIRECT);
    await using _ = home;
    home.failingWrites.add('completePairing');
    await follow(home, await home.login(run));
    expect(stateOf(run)).toBe('paired');
    const token = await home.token(id);
    expect(await home.whoami(token)).toBe(200);
    expect(home.run.grants.get(id)?.health).toMatchObject({ problem: { code: 'store_unwritable' } });
    home.failingWrites.clear();
    await home.time.pass(5 * MINUTE);
    expect((await home.run.store.grant(id))?.grant.accessToken.reveal()).toBe(token);
    expect(home.run.grants.get(id)?.health).toEqual({ kind: 'good' });
  });
});

describe('restart with open pairings', () => {
  test('a restart continues a pairing that had no link yet', async () => {
    await using home = await BrokerHarness.start();
    await home.addAppliance('wallbox');
    await home.portal.disconnect();
    const { pairing } = await home.beginPairing('wallbox');
    await home.stop();
    await home.portal.reconnect();
    await home.start();
    await home.time.settle();
    const run = home.run.pairings.get(pairing.id);
    expect(stateOf(run)).toBe('waiting');
    expect(run.pairing.nonce).toBe(pairing.nonce);
  });

  test.each(['stop', 'crash'] as const)(
    '(%s) a restart keeps the link of a pairing, and a login through it succeeds by redirect or polling',
    async (end) => {
      const { home, run } = await begun(REDIRECT);
      await using _ = home;
      const location = await home.login(run);
      await home[end]();
      await home.start();
      const again = home.run.pairings.get(run.pairing.id);
      expect(again.pairing.step).toEqual(run.pairing.step);
      expect(home.portal.requests('config')).toHaveLength(1);
      if (end === 'stop') await follow(home, location);
      else await home.time.pass(10 * SECOND);
      expect(stateOf(again)).toBe('paired');
    },
  );

  test('a restart during a code exchange counts it as a lost answer, gets a fresh link and never repeats the code', async () => {
    const { home, id, run } = await begun({ ...REDIRECT, emulator: { codeUrlAfterExchange: 'served' } });
    await using _ = home;
    const answer = Promise.withResolvers<void>();
    home.portal.fail('token', { kind: 'wait', until: answer.promise });
    const location = await home.login(run);
    void follow(home, location);
    await expect.poll(() => home.emulator.grants().length).toBe(1);
    const crashed = home.crash();
    answer.resolve();
    await crashed;
    home.time.reboot(home.time.wall + 20 * SECOND);
    await home.start();
    await home.time.settle();
    const again = home.run.pairings.get(run.pairing.id);
    expect(stateOf(again)).toBe('waiting');
    expect(home.portal.requests('config')).toHaveLength(2);
    await follow(home, location);
    await home.time.pass(20 * SECOND);
    expect(home.exchanges).toBe(1);
    await follow(home, await home.login(again));
    expect(stateOf(again)).toBe('paired');
    expect(await home.whoami(await home.token(id))).toBe(200);
    expectNoCodeTwice(home);
  });

  test('an interrupted code exchange is logged once over several restarts, and not repeated', async () => {
    const { home, run } = await begun(REDIRECT);
    await using _ = home;
    const answer = Promise.withResolvers<void>();
    home.portal.fail('token', { kind: 'wait', until: answer.promise });
    void follow(home, await home.login(run));
    await expect.poll(() => home.exchanges).toBe(1);
    await home.crash();
    answer.resolve();
    await home.portal.disconnect();
    for (let start = 0; start < 3; start++) {
      await home.start();
      await home.time.pass(10 * SECOND);
      expect(home.run.pairings.get(run.pairing.id).pairing).toMatchObject({ lastFailure: 'answer_lost' });
      await home.stop();
    }
    const told = home.events.filter(({ event }) => event === 'code_exchange_interrupted');
    expect(told).toMatchObject([
      { fields: { appliance: 'wallbox', since: expect.stringContaining('2031-05-05T06:') } },
    ]);
    expect(home.exchanges).toBe(1);
    await home.portal.reconnect();
    await home.start();
  });

  test('a restarted hub still knows how a pairing ended', async () => {
    const { home, run } = await begun(REDIRECT);
    await using _ = home;
    const location = await home.login(run);
    await follow(home, location);
    await home.stop();
    await home.start();
    expect((await follow(home, location))?.step).toEqual(run.pairing.step);
    expect(home.exchanges).toBe(1);
    expect(home.run.pairings.newestFor(run.pairing.appliance)?.pairing.id).toBe(run.pairing.id);
  });

  test('a pairing whose lifetime has passed expires at the restart', async () => {
    const { home, run } = await begun();
    await using _ = home;
    await home.stop();
    home.time.reboot(home.time.wall + 20 * MINUTE);
    await home.start();
    await home.time.pass(SECOND);
    expect(stateOf(home.run.pairings.get(run.pairing.id))).toBe('expired');
  });

  test('only the newest of two open pairings of one appliance continues after a restart', async () => {
    const { home, run } = await begun();
    await using _ = home;
    const { store } = home.run;
    await store.savePairing({ ...run.pairing, id: '22222222-2222-4222-8222-222222222222', nonce: 'another' });
    await home.stop();
    await home.start();
    await home.time.settle();
    expect(stateOf(home.run.pairings.get(run.pairing.id))).toBe('replaced');
    expect(stateOf(home.run.pairings.newestFor(run.pairing.appliance) ?? there())).toBe('waiting');
  });

  test('a stopping hub does not wait for a deferred code, and the next run gets it again by polling', async () => {
    const { home, run } = await begun(REDIRECT);
    await using _ = home;
    home.portal.fail('token', { kind: 'answer', status: 503, headers: { 'retry-after': '50' } });
    void follow(home, await home.login(run));
    await home.time.settle();
    await home.stop();
    await home.start();
    expect(home.exchanges).toBe(1);
    expect(stateOf(home.run.pairings.get(run.pairing.id))).toBe('waiting');
    await home.time.pass(10 * SECOND);
    expect(stateOf(home.run.pairings.get(run.pairing.id))).toBe('paired');
  });

  test('a stopping hub waits for a code exchange in flight and keeps its grant', async () => {
    const { home, id, run } = await begun(REDIRECT);
    await using _ = home;
    const answer = Promise.withResolvers<void>();
    home.portal.fail('token', { kind: 'wait', until: answer.promise });
    void follow(home, await home.login(run));
    await expect.poll(() => home.emulator.grants().length).toBe(1);
    const stopping = home.stop();
    answer.resolve();
    await stopping;
    await home.start();
    expect(await home.whoami(await home.token(id))).toBe(200);
    expect(stateOf(home.run.pairings.get(run.pairing.id))).toBe('paired');
  });

  test("a pairing that waits for another one's code exchange continues in the next run", async () => {
    const { home, run } = await begun(REDIRECT);
    await using _ = home;
    const answer = Promise.withResolvers<void>();
    home.portal.fail('token', { kind: 'wait', until: answer.promise });
    void follow(home, await home.login(run));
    await expect.poll(() => home.emulator.grants().length).toBe(1);
    const another = home.run.pairings.begin(home.run.appliances.get('wallbox'));
    // By now it is stored, and waits: for a portal that takes its time.
    await expect.poll(async () => (await home.run.store.pairings()).length).toBe(2);
    await sleep(30);
    const stopping = home.run.pairings[Symbol.asyncDispose]();
    answer.resolve();
    await stopping;
    const { pairing } = await another;
    await home.time.pass(60 * SECOND);
    expect(home.portal.requests('config')).toHaveLength(1);
    await home.stop();
    await home.start();
    await home.time.settle();
    expect(stateOf(home.run.pairings.get(pairing.id))).toBe('waiting');
  });
});

test('the removal of an appliance removes its pairings, and a later callback is ignored', async () => {
  const { home, id, run } = await begun(REDIRECT);
  await using _ = home;
  const location = await home.login(run);
  await home.run.pairings.removeAll(id);
  await home.run.appliances.remove(home.run.appliances.get('wallbox'));
  expect(await follow(home, location)).toBeNull();
  expect(() => home.run.pairings.get(run.pairing.id)).toThrow(expect.objectContaining({ code: 'pairing_unknown' }));
  await home.time.pass(MINUTE);
  expect(home.exchanges).toBe(0);
});

test('a watcher of a pairing is called for every step until it stops watching', async () => {
  await using home = await BrokerHarness.start(REDIRECT);
  const { appliance } = await home.addAppliance('wallbox');
  const run = await home.run.pairings.begin(appliance);
  const steps: string[] = [];
  const unwatch = run.watch(() => steps.push(stateOf(run)));
  await home.time.settle();
  await follow(home, await home.login(run));
  expect(steps).toEqual(['waiting', 'exchanging', 'paired']);
  unwatch();
  await run.fail('cancelled');
  expect(steps).toHaveLength(3);
  expect(stateOf(run)).toBe('paired');
});

test('an appliance without a scope is paired without one', async () => {
  await using home = await BrokerHarness.start();
  const id = await home.addPairedAppliance('wallbox', null);
  expect(home.portal.requests('token')[0]?.form.has('scope')).toBe(false);
  expect(await home.run.tokenIssuer.issue(id, null)).toMatchObject({ kind: 'token', scope: null });
});

function there(): never {
  throw new Error('it is not there');
}

test("a short link's key identifies its pairing, does not reveal the nonce, and survives a restart", async () => {
  const { home, run } = await begun(REDIRECT);
  await using _ = home;
  const { nonce } = run.pairing;
  const { shortKey } = run;
  rememberSecrets([nonce, shortKey]);
  expect(shortKey).toMatch(/^[\w-]{16}$/);
  const plain = [nonce, Buffer.from(nonce, 'base64url')].flatMap((text) =>
    (['base64url', 'hex'] as const).map((encoding) => createHash('sha256').update(text).digest(encoding)),
  );
  // What else is made of the nonce leads to no key either.
  for (const text of [nonce, ...plain]) expect(text).not.toContain(shortKey);
  const other = await home.addAppliance('heater').then(() => home.beginPairing('heater'));
  expect(other.shortKey).not.toBe(shortKey);
  for (const key of ['', nonce, run.nonceHash, run.pairing.id, shortKey.slice(1), `${shortKey}A`])
    expect(home.run.pairings.findByShortKey(key)).toBeUndefined();
  await home.stop();
  const { pairings } = await home.start();
  expect(pairings.findByShortKey(shortKey)?.pairing.id).toBe(run.pairing.id);
});
