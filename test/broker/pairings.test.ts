import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { PairingRun } from '../../src/broker/pairings/pairing-run.ts';
import type { CallbackBrowser } from '../../src/core/lan-service.ts';
import { Secret } from '../../src/core/secret.ts';
import { MINUTE, SECOND } from '../core/samples.ts';
import { rememberSecrets } from '../support/logs.ts';
import { generationOf } from '../support/stored-grants.ts';
import { BrokerHarness, type BrokerHarnessOptions, pairingResult, UNKNOWN_BROWSER } from './broker-harness.ts';
import { expectPairedByPolling, followRedirect, REDIRECT, stateOf } from './logins.ts';

/** A broker with an appliance whose pairing has begun. */
async function startPairing(options: BrokerHarnessOptions = {}) {
  const { harness, appliance } = await BrokerHarness.startUnpaired(options);
  return { harness, id: appliance.id, run: await harness.beginPairing('wallbox') };
}

/** A browser that the hub sent to the portal: the hub accepts its code even if polling can't confirm it. */
function sentBy({ run: { pairings } }: BrokerHarness, { pairing }: PairingRun): CallbackBrowser {
  return { ...UNKNOWN_BROWSER, browserToken: pairings.browserToken(pairing.id).reveal() };
}

/** The codes that were sent to the token endpoint. */
function codesSent(harness: BrokerHarness): string[] {
  return harness.portal
    .requests('token')
    .map(({ form }) => form.get('code'))
    .filter((code) => code !== null);
}

function expectNoCodeTwice(harness: BrokerHarness): void {
  expect(new Set(codesSent(harness)).size).toBe(codesSent(harness).length);
  expect(harness.emulator.observations.codesRepeated).toBe(0);
}

describe('pairing by polling', () => {
  test('polling notices a login, the hub exchanges the code once, and polling stops', async () => {
    const { harness, id, run } = await startPairing();
    expect(stateOf(run)).toBe('waiting');
    await harness.time.pass(60 * SECOND);
    await harness.login(run);
    await harness.time.pass(10 * SECOND);
    expect(run.pairing.step).toEqual({ kind: 'ended', result: { kind: 'paired', scope: 'Monitoring' } });
    const polls = harness.portal.requests('code').length;
    await harness.time.pass(10 * MINUTE);
    expect(harness.portal.requests('code')).toHaveLength(polls);
    expect(harness.exchanges).toBe(1);
    expect(await harness.whoami(await harness.token(id))).toBe(200);
    expect(harness.portal.requests('token')[0]?.form.get('scope')).toBe('Monitoring');
  });

  test('an unreachable portal is polled less often, but often enough not to miss a code', async () => {
    const { harness, run } = await startPairing({ fraction: 0.999 });
    harness.portal.fail('code', ...Array(1000).fill({ kind: 'answer', status: 500 } as const));
    await harness.time.pass(5 * MINUTE);
    expect(harness.portal.requests('code').length).toBeLessThan(20);
    expect(harness.portal.requests('code').length).toBeGreaterThan(14);
    expect(run.runner.portalProblem).toBe('HTTP 500');
    expect(harness.events.filter(({ event }) => event === 'portal_unreachable')).toHaveLength(1);
  });

  test("polling waits as long as the portal's Retry-After says", async () => {
    const { harness } = await startPairing();
    harness.portal.fail('code', { kind: 'answer', status: 429, headers: { 'retry-after': '60' } });
    await harness.time.pass(60 * SECOND);
    expect(harness.portal.requests('code')).toHaveLength(1);
    await harness.time.pass(20 * SECOND);
    expect(harness.portal.requests('code').length).toBeGreaterThan(1);
  });
});

describe('pairing by redirect', () => {
  test('a code that the browser brings is exchanged at once, and polling stops', async () => {
    const { harness, id, run } = await startPairing(REDIRECT);
    expect(harness.portal.requests('config')[0]?.query.get('redirect_url')).toBe(
      `http://192.168.1.7:8480/callback/${run.pairing.nonce}`,
    );
    const pairing = await followRedirect(harness, await harness.login(run));
    expect(pairing?.step).toMatchObject({ kind: 'ended', result: { kind: 'paired' } });
    await harness.time.pass(5 * MINUTE);
    expect(harness.portal.requests('code')).toHaveLength(1);
    expect(harness.exchanges).toBe(1);
    expect(await harness.whoami(await harness.token(id))).toBe(200);
  });

  test('a code that arrives by redirect and by polling at the same moment is exchanged once', async () => {
    const { harness, run } = await startPairing(REDIRECT);
    const location = await harness.login(run);
    await Promise.all([
      followRedirect(harness, location),
      harness.time.pass(10 * SECOND),
      followRedirect(harness, location),
    ]);
    expect(stateOf(run)).toBe('paired');
    expect(harness.exchanges).toBe(1);
  });

  test('a callback with an unknown nonce is ignored', async () => {
    const { harness, run } = await startPairing(REDIRECT);
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
        await harness.run.pairings.receive({ nonce, response: { kind: 'code', code: planted } }, UNKNOWN_BROWSER),
      ).toBeNull();
    }
    expect(harness.exchanges).toBe(0);
    expect(stateOf(run)).toBe('waiting');
  });

  test('a callback with neither code nor error changes nothing', async () => {
    const { harness, run } = await startPairing(REDIRECT);
    const received = { nonce: run.pairing.nonce, response: { kind: 'nothing' } } as const;
    expect((await harness.run.pairings.receive(received, UNKNOWN_BROWSER))?.pairing).toBe(run.pairing);
    expect(stateOf(run)).toBe('waiting');
  });

  test('a pairing ends as refused_by_user when the person refuses at the portal', async () => {
    const { harness, run } = await startPairing(REDIRECT);
    await followRedirect(harness, await harness.login(run, true), sentBy(harness, run));
    expect(stateOf(run)).toBe('refused_by_user');
    expect(await harness.run.store.pairings.all()).toMatchObject([{ step: { result: { reason: 'refused_by_user' } } }]);
  });

  test('an error that anybody could have brought does not end a pairing: the portal is asked, and its code counts', async () => {
    const { harness, run } = await startPairing(REDIRECT);
    const forged = { kind: 'error', error: 'access_denied' } as const;
    const receive = () => harness.run.pairings.receive({ nonce: run.pairing.nonce, response: forged }, UNKNOWN_BROWSER);
    const [received] = await Promise.all([receive(), harness.time.pass(5 * SECOND)]);
    expect(received?.pairing).toMatchObject({ step: { kind: 'waiting' }, lastFailure: 'refused_by_user' });
    expect(await harness.run.store.pairings.all()).toMatchObject([{ lastFailure: 'refused_by_user' }]);
    await harness.login(run);
    await receive();
    expect(stateOf(run)).toBe('paired');
  });

  test.each(['temporarily_unavailable', 'server_error'])(
    'a pairing goes on after the error %s, which may pass',
    async (error) => {
      const { harness, run } = await startPairing(REDIRECT);
      const { nonce } = run.pairing;
      const received = harness.run.pairings.receive(
        { nonce, response: { kind: 'error', error } },
        sentBy(harness, run),
      );
      await Promise.all([received, harness.time.pass(5 * SECOND)]);
      expect(run.pairing).toMatchObject({ step: { kind: 'waiting' }, lastFailure: 'portal_rejected' });
      await expectPairedByPolling(harness, run);
    },
  );

  test('a redirected code of another configured portal is not used, not even from a browser that the hub sent', async () => {
    const { harness, run } = await startPairing(REDIRECT);
    const origin = harness.portal.frontendUrl;
    await harness.stop();
    harness.identity = { origin, clientId: harness.emulator.clientId, otherOrigins: ['https://other.example'] };
    await harness.start();
    const code = new Secret('a-code-of-another-portal');
    rememberSecrets([code.reveal()]);
    const foreign = { kind: 'code', code, issuer: 'https://other.example' } as const;
    await harness.run.pairings.receive({ nonce: run.pairing.nonce, response: foreign }, sentBy(harness, run));
    expect(harness.exchanges).toBe(0);
    expect(harness.events.map(({ event }) => event)).toContain('login_response_rejected');
    expect(stateOf(harness.run.pairings.get(run.pairing.id))).toBe('waiting');
  });

  test('a portal that rejects the redirect address is asked again without it, and polled', async () => {
    const id = '6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1a01';
    const clients = [{ id, secret: 'a-secret-that-no-log-may-hold', redirectUrl: 'refuse' as const }];
    const { harness, run } = await startPairing({ ...REDIRECT, emulator: { clients } });
    expect(harness.portal.requests('config').map(({ query }) => query.has('redirect_url'))).toEqual([true, false]);
    await expectPairedByPolling(harness, run);
  });

  test.each([408, 429, 503])(
    'HTTP %d is not a rejection of the redirect address, and the hub asks for a link with it again',
    async (status) => {
      const { harness } = await BrokerHarness.startUnpaired(REDIRECT);
      harness.portal.fail('config', { kind: 'answer', status });
      const run = await harness.beginPairing('wallbox');
      expect(stateOf(run)).toBe('asking');
      expect(run.runner.portalProblem).toBe(`HTTP ${status}`);
      await harness.time.pass(10 * SECOND);
      expect(stateOf(run)).toBe('waiting');
      expect(run.runner.portalProblem).toBeNull();
      expect(harness.portal.requests('config').map(({ query }) => query.has('redirect_url'))).toEqual([true, true]);
    },
  );
});

describe('end of a pairing', () => {
  test('a cancelled pairing ends, and a later login changes nothing', async () => {
    const { harness, id, run } = await startPairing(REDIRECT);
    const location = await harness.login(run);
    await harness.run.pairings.end(id);
    expect((await followRedirect(harness, location))?.step).toMatchObject({ result: { reason: 'cancelled' } });
    await harness.time.pass(MINUTE);
    expect(harness.exchanges).toBe(0);
    expect(await harness.token(id)).toBe('not_paired');
  });

  test('a pairing ends as replaced when another one begins for its appliance', async () => {
    const { harness, id, run } = await startPairing(REDIRECT);
    const old = await harness.login(run);
    const second = await harness.beginPairing('wallbox');
    expect(stateOf(run)).toBe('replaced');
    expect((await followRedirect(harness, old))?.step).toMatchObject({ result: { reason: 'replaced' } });
    expect(harness.exchanges).toBe(0);
    expect(harness.run.pairings.newestFor(id)).toBe(second);
    await followRedirect(harness, await harness.login(second));
    expect(stateOf(second)).toBe('paired');
  });

  test('only one pairing stays open when several begin for one appliance at the same moment', async () => {
    const { harness, appliance } = await BrokerHarness.startUnpaired();
    const runs = await Promise.all([1, 2, 3].map(() => harness.run.pairings.begin(harness.connection(appliance.name))));
    await harness.time.settle();
    expect(runs.map(stateOf).sort()).toEqual(['replaced', 'replaced', 'waiting']);
    expect(stateOf(harness.run.pairings.newestFor(appliance.id) ?? failMissing())).toBe('waiting');
  });

  test.each([
    [403, 'portal_rejected'],
    [404, 'client_unknown'],
  ])('a pairing ends when the portal responds to the request for a link with HTTP %d (%s)', async (status, reason) => {
    const { harness } = await BrokerHarness.startUnpaired();
    harness.portal.fail('config', { kind: 'answer', status });
    expect(stateOf(await harness.beginPairing('wallbox'))).toBe(reason);
  });

  test('a pairing ends when the portal names a token URL of another origin, and no request goes there', async () => {
    const { harness } = await BrokerHarness.startUnpaired();
    const foreignCode = (body: string) => body.replace(/http:[^"]*sso\\?\/token/, 'https://evil.example/sso/token');
    harness.portal.fail('config', { kind: 'alter', with: foreignCode });
    const run = await harness.beginPairing('wallbox');
    expect(stateOf(run)).toBe('foreign_origin');
    await harness.time.pass(MINUTE);
    expect(harness.exchanges).toBe(0);
  });

  test('a pairing ends when its portal is no longer configured', async () => {
    const { harness } = await BrokerHarness.startUnpaired();
    harness.configured = false;
    expect(stateOf(await harness.beginPairing('wallbox'))).toBe('misconfigured');
  });
});

test.each([
  [
    401,
    '',
    'misconfigured',
    /responded with HTTP 401 and no error code, as for a wrong client secret: check portals\.home\.client_id, and the client secret/,
  ],
  [
    400,
    'invalid client',
    'portal_rejected',
    /HTTP 400 and no error code: check portals\.home\.client_id, and the client secret; check portals\.home\.frontend_url/,
  ],
  [
    401,
    '{"error":"invalid_client"}',
    'misconfigured',
    /\(HTTP 401 invalid_client\): check portals\.home\.client_id, and the client secret/,
  ],
  [
    400,
    '{"error":"invalid_scope","error_description":"The scope Monitoring is unknown"}',
    'portal_rejected',
    /HTTP 400 invalid_scope \(The scope Monitoring is unknown\); correct the scope of wallbox .* and run "latchkey pair wallbox"/,
  ],
  [
    400,
    '{"error":"invalid_grant","error_description":"redirect_uri differs"}',
    'code_refused',
    /invalid_grant \(redirect_uri differs\)/,
  ],
])(
  'a code exchange that fails with HTTP %d %s names the likely cause and what to correct',
  async (status, body, reason, message) => {
    const { harness, run } = await startPairing();
    for (let times = 0; times < 3; times++) harness.portal.fail('token', { kind: 'answer', status, body });
    await harness.login(run);
    // A portal that rejects a code may accept the next one, until the pairing expires.
    await harness.time.pass(15 * MINUTE);
    expect(stateOf(run)).toBe(reason);
    expect(harness.statusOf('wallbox').pairingFailed?.message).toMatch(message);
  },
);

describe('authorization code', () => {
  test.each(['drop', 'commit then drop', 'truncate'] as const)(
    'a lost answer to a code exchange (%s) brings a fresh link, and the code is not sent again',
    async (kind) => {
      const { harness, id, run } = await startPairing({ ...REDIRECT, emulator: { codeUrlAfterExchange: 'served' } });
      harness.portal.fail('token', { kind });
      const location = await harness.login(run);
      await followRedirect(harness, location);
      await harness.time.settle();
      expect(stateOf(run)).toBe('waiting');
      expect(harness.portal.requests('config')).toHaveLength(2);
      await followRedirect(harness, location);
      await harness.time.pass(30 * SECOND);
      expect(harness.exchanges).toBe(1);
      await followRedirect(harness, await harness.login(run));
      expect(stateOf(run)).toBe('paired');
      expect(await harness.whoami(await harness.token(id))).toBe(200);
      expectNoCodeTwice(harness);
    },
  );

  test('a code that could not be sent is sent again while it is valid', async () => {
    const { harness, run } = await startPairing(REDIRECT);
    const location = await harness.login(run);
    await harness.portal.disconnect();
    const received = followRedirect(harness, location, sentBy(harness, run));
    await harness.time.pass(5 * SECOND);
    expect(stateOf(run)).toBe('exchanging');
    await harness.portal.reconnect();
    await harness.time.pass(10 * SECOND);
    await received;
    expect(stateOf(run)).toBe('paired');
    expect(harness.exchanges).toBe(1);
  });

  test('a code that could not be sent within its lifetime is dropped, and the same link can be used again', async () => {
    const { harness, run } = await startPairing(REDIRECT);
    const location = await harness.login(run);
    await harness.portal.disconnect();
    void followRedirect(harness, location, sentBy(harness, run));
    await harness.time.pass(5 * SECOND);
    expect(stateOf(run)).toBe('exchanging');
    await harness.time.pass(65 * SECOND);
    expect(stateOf(run)).toBe('waiting');
    await harness.portal.reconnect();
    await followRedirect(harness, await harness.login(run));
    expect(stateOf(run)).toBe('paired');
  });

  test('a code exchange that the portal defers is sent again after the Retry-After time', async () => {
    const { harness, run } = await startPairing(REDIRECT);
    harness.portal.fail('token', { kind: 'answer', status: 503, headers: { 'retry-after': '8' } });
    const received = followRedirect(harness, await harness.login(run));
    await harness.time.pass(7 * SECOND);
    expect(harness.exchanges).toBe(1);
    await harness.time.pass(2 * SECOND);
    await received;
    expect(stateOf(run)).toBe('paired');
    expect(harness.exchanges).toBe(2);
  });

  test('a code that a firewall refuses for a moment is sent again, and one that it goes on refusing is dropped', async () => {
    const { harness, run } = await startPairing(REDIRECT);
    const page = { kind: 'answer', status: 403, body: '<html>Forbidden</html>' } as const;
    harness.portal.fail('token', page);
    const received = followRedirect(harness, await harness.login(run), sentBy(harness, run));
    await harness.time.pass(2 * SECOND);
    await received;
    expect([stateOf(run), harness.exchanges]).toEqual(['paired', 2]);

    const again = await startPairing(REDIRECT);
    for (let times = 0; times < 3; times++) again.harness.portal.fail('token', page);
    const refused = followRedirect(
      again.harness,
      await again.harness.login(again.run),
      sentBy(again.harness, again.run),
    );
    await again.harness.time.pass(9 * SECOND);
    await refused;
    expect([stateOf(again.run), again.harness.exchanges]).toEqual(['waiting', 3]);
    expect(again.run.pairing.lastFailure).toBe('portal_rejected');
  });

  test('a code is written ahead before it is sent', async () => {
    const { harness, run } = await startPairing(REDIRECT);
    const disk = harness.holdWrites('pairings.save');
    const received = followRedirect(harness, await harness.login(run));
    await expect.poll(() => stateOf(run)).toBe('exchanging');
    await sleep(30);
    expect(harness.exchanges).toBe(0);
    disk.resolve();
    await received;
    expect(stateOf(run)).toBe('paired');
  });

  test('a code that cannot be written ahead is not sent, and the next poll tries again', async () => {
    const { harness, run } = await startPairing();
    harness.failingWrites.add('pairings.save');
    await harness.login(run);
    await harness.time.pass(10 * SECOND);
    expect(harness.exchanges).toBe(0);
    harness.failingWrites.clear();
    await harness.time.pass(10 * SECOND);
    expect(stateOf(run)).toBe('paired');
    expect(harness.exchanges).toBe(1);
  });
});

describe('pairing that ends during its code exchange', () => {
  test('a pairing that is cancelled while its code is written ahead stays cancelled, and the code is not sent', async () => {
    const { harness, id, run } = await startPairing(REDIRECT);
    const location = await harness.login(run);
    const disk = harness.holdWrites('pairings.save');
    const received = followRedirect(harness, location);
    await expect.poll(() => stateOf(run)).toBe('exchanging');
    // The write that ends the pairing is not delayed.
    harness.delayedWrites.delete('pairings.save');
    const ended = harness.run.pairings.end(id);
    await sleep(30);
    disk.resolve();
    await Promise.all([received, ended]);
    expect(stateOf(run)).toBe('cancelled');
    expect(harness.exchanges).toBe(0);
    expect(await harness.run.store.pairings.all()).toMatchObject([{ step: { result: { reason: 'cancelled' } } }]);
  });

  test('memory and store agree when a pairing is cancelled while its grant is being saved', async () => {
    const { harness, id, run } = await startPairing(REDIRECT);
    const disk = harness.holdWrites('saveLogin');
    const received = followRedirect(harness, await harness.login(run));
    await expect.poll(() => harness.emulator.grants().length).toBe(1);
    await sleep(30);
    const ended = harness.run.pairings.end(id);
    disk.resolve();
    await Promise.all([received, ended]);
    await harness.time.settle();
    const paired = stateOf(run) === 'paired';
    expect((await harness.token(id)) === 'not_paired').toBe(!paired);
    expect(await harness.run.store.grants.all()).toHaveLength(paired ? 1 : 0);
    expect((await harness.run.store.pairings.all()).map((pairing) => pairingResult(pairing.step))).toEqual([
      stateOf(run),
    ]);
  });
});

describe('new pairing of an active appliance', () => {
  test('an active appliance keeps its grant until a new pairing brings another one', async () => {
    const { harness, id } = await BrokerHarness.startPaired();
    const token = await harness.token(id);
    const run = await harness.beginPairing('wallbox');
    expect(await harness.token(id)).toBe(token);
    await harness.run.pairings.end(id);
    expect(await harness.token(id)).toBe(token);
    const second = await harness.beginPairing('wallbox');
    await harness.login(second);
    await harness.time.pass(10 * SECOND);
    expect(stateOf(run)).toBe('cancelled');
    expect(await harness.token(id)).not.toBe(token);
    expect(await generationOf(harness.run.store, id)).toBe(2);
  });

  test('a new grant replaces the old one even if the old one is refreshed at the same moment', async () => {
    const { harness, id } = await BrokerHarness.startPaired(REDIRECT);
    const run = await harness.beginPairing('wallbox');
    const location = await harness.login(run);
    const disk = harness.holdWrites('saveLogin');
    const received = followRedirect(harness, location);
    await expect.poll(() => harness.emulator.grants().length).toBe(2);
    await sleep(30);
    await harness.run.grants.refresh(id);
    expect(await generationOf(harness.run.store, id)).toBe(2);
    disk.resolve();
    await received;
    expect(stateOf(run)).toBe('paired');
    expect(await generationOf(harness.run.store, id)).toBe(3);
    expect((await harness.run.store.grants.get(id))?.grant.accessToken.reveal()).toBe(await harness.token(id));
    expectNoCodeTwice(harness);
  });

  test.each(['the first login', 'a login after an unpairing'])(
    'a new grant that cannot be saved is used from memory and saved later (%s)',
    async (which) => {
      let { harness, id, run } = await startPairing(REDIRECT);
      if (which !== 'the first login') {
        await followRedirect(harness, await harness.login(run));
        await harness.run.grants.delete(id);
        run = await harness.beginPairing('wallbox');
      }
      harness.failingWrites.add('saveLogin');
      await followRedirect(harness, await harness.login(run));
      expect(stateOf(run)).toBe('paired');
      const token = await harness.token(id);
      expect(await harness.whoami(token)).toBe(200);
      expect(harness.run.grants.get(id)?.health).toMatchObject({ problem: { code: 'store_unwritable' } });
      harness.failingWrites.clear();
      await harness.time.pass(5 * MINUTE);
      expect((await harness.run.store.grants.get(id))?.grant.accessToken.reveal()).toBe(token);
      expect(harness.run.grants.get(id)?.health).toEqual({ kind: 'good' });
    },
  );
});

describe('restart with open pairings', () => {
  test.each(['stop', 'crash'] as const)(
    '(%s) a restart keeps the link of a pairing, and a login through it succeeds by redirect or polling',
    async (end) => {
      const { harness, run } = await startPairing(REDIRECT);
      const location = await harness.login(run);
      await harness[end]();
      await harness.start();
      const again = harness.run.pairings.get(run.pairing.id);
      expect(again.pairing.step).toEqual(run.pairing.step);
      expect(harness.portal.requests('config')).toHaveLength(1);
      if (end === 'stop') await followRedirect(harness, location);
      else await harness.time.pass(10 * SECOND);
      expect(stateOf(again)).toBe('paired');
    },
  );

  test('a restart during a code exchange counts it as a lost answer, gets a fresh link and never repeats the code', async () => {
    const { harness, id, run } = await startPairing({ ...REDIRECT, emulator: { codeUrlAfterExchange: 'served' } });
    const response = harness.portal.hold('token');
    const location = await harness.login(run);
    void followRedirect(harness, location);
    await expect.poll(() => harness.emulator.grants().length).toBe(1);
    const crashed = harness.crash();
    response.resolve();
    await crashed;
    harness.time.reboot(harness.time.wall + 20 * SECOND);
    await harness.start();
    await harness.time.settle();
    const again = harness.run.pairings.get(run.pairing.id);
    expect(stateOf(again)).toBe('waiting');
    expect(harness.portal.requests('config')).toHaveLength(2);
    await followRedirect(harness, location);
    await harness.time.pass(20 * SECOND);
    expect(harness.exchanges).toBe(1);
    await followRedirect(harness, await harness.login(again));
    expect(stateOf(again)).toBe('paired');
    expect(await harness.whoami(await harness.token(id))).toBe(200);
    expectNoCodeTwice(harness);
  });

  test('a restarted hub still knows how a pairing ended', async () => {
    const { harness, run } = await startPairing(REDIRECT);
    const location = await harness.login(run);
    await followRedirect(harness, location);
    await harness.restart();
    expect((await followRedirect(harness, location))?.step).toEqual(run.pairing.step);
    expect(harness.exchanges).toBe(1);
    expect(harness.run.pairings.newestFor(run.pairing.connection)?.pairing.id).toBe(run.pairing.id);
  });

  test('only the newest of two open pairings of one appliance continues after a restart', async () => {
    const { harness, run } = await startPairing();
    const { store } = harness.run;
    await store.pairings.save({ ...run.pairing, id: '22222222-2222-4222-8222-222222222222', nonce: 'another' });
    await harness.restart();
    await harness.time.settle();
    expect(stateOf(harness.run.pairings.get(run.pairing.id))).toBe('replaced');
    expect(stateOf(harness.run.pairings.newestFor(run.pairing.connection) ?? failMissing())).toBe('waiting');
  });

  test('a stopping hub does not wait for a deferred code, and the next run gets it again by polling', async () => {
    const { harness, run } = await startPairing(REDIRECT);
    harness.portal.fail('token', { kind: 'answer', status: 503, headers: { 'retry-after': '50' } });
    void followRedirect(harness, await harness.login(run));
    await harness.time.settle();
    await harness.restart();
    expect(harness.exchanges).toBe(1);
    expect(stateOf(harness.run.pairings.get(run.pairing.id))).toBe('waiting');
    await harness.time.pass(10 * SECOND);
    expect(stateOf(harness.run.pairings.get(run.pairing.id))).toBe('paired');
  });

  test('a stopping hub waits for a code exchange in flight and keeps its grant', async () => {
    const { harness, id, run } = await startPairing(REDIRECT);
    const response = harness.portal.hold('token');
    void followRedirect(harness, await harness.login(run));
    await expect.poll(() => harness.emulator.grants().length).toBe(1);
    const stopping = harness.stop();
    response.resolve();
    await stopping;
    await harness.start();
    expect(await harness.whoami(await harness.token(id))).toBe(200);
    expect(stateOf(harness.run.pairings.get(run.pairing.id))).toBe('paired');
  });
});

test('an appliance without a scope is paired without one', async () => {
  const harness = await BrokerHarness.start();
  const id = await harness.addPairedAppliance('wallbox', null);
  expect(harness.portal.requests('token')[0]?.form.has('scope')).toBe(false);
  expect(await harness.run.tokenIssuer.issue(id, null)).toMatchObject({ kind: 'token', scope: null });
});

function failMissing(): never {
  throw new Error('it is not there');
}

test("a short link's key identifies its pairing, does not reveal the nonce, and survives a restart", async () => {
  const { harness, run } = await startPairing(REDIRECT);
  const { nonce } = run.pairing;
  const { shortKey } = run;
  rememberSecrets([nonce, shortKey]);
  expect(shortKey).toMatch(/^[\w-]{16}$/);
  const plain = [nonce, Buffer.from(nonce, 'base64url')].flatMap((text) =>
    (['base64url', 'hex'] as const).map((encoding) => createHash('sha256').update(text).digest(encoding)),
  );
  // The key can't be derived from the nonce with a plain hash either.
  for (const text of [nonce, ...plain]) expect(text).not.toContain(shortKey);
  const other = await harness.addAppliance('heater').then(() => harness.beginPairing('heater'));
  expect(other.shortKey).not.toBe(shortKey);
  for (const key of ['', nonce, run.nonceHash, run.pairing.id, shortKey.slice(1), `${shortKey}A`])
    expect(harness.run.pairings.findByShortKey(key)).toBeUndefined();
  const { pairings } = await harness.restart();
  expect(pairings.findByShortKey(shortKey)?.pairing.id).toBe(run.pairing.id);
});
