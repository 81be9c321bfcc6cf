import { expect, test } from 'vitest';
import type { PairingRun } from '../../src/broker/pairings/pairing-run.ts';
import type { CallbackBrowser } from '../../src/core/lan-service.ts';
import { Secret } from '../../src/core/secret.ts';
import { rememberSecrets } from '../support/logs.ts';
import { BrokerHarness, pairingResult, UNKNOWN_BROWSER } from './broker-harness.ts';

const SECOND = 1000;
const PHONE: CallbackBrowser = { address: '192.168.1.50', browserBinding: null };

const stateOf = (run: PairingRun) => pairingResult(run.pairing.step);

/** A home with a pairing that waits for a login, at a portal where somebody else has an account too. */
async function waiting() {
  const users = ['demo', 'mallory'].map((name) => ({ name, password: name }));
  const redirect = (nonce: string) => `http://192.168.1.7:8480/callback/${nonce}`;
  const home = await BrokerHarness.start({ emulator: { users }, redirect });
  const { appliance } = await home.addAppliance('wallbox');
  return { home, id: appliance.id, run: await home.beginPairing('wallbox') };
}

/** A code of mallory's own login, for the hub's client: good at the portal. */
async function foreignCode({ emulator }: BrokerHarness): Promise<Secret> {
  const config = `${emulator.baseUrl}/external/oauth2helper/config/${emulator.clientId}`;
  const { authorize_url, code_url } = await (await fetch(config, { method: 'POST' })).json();
  await emulator.login({ state: new URL(authorize_url).searchParams.get('state') ?? '', user: 'mallory' });
  const { code } = await (await fetch(code_url)).json();
  return new Secret(code);
}

/** Brings a code to the callback, and lets the time pass that the hub takes to judge it. */
async function bring(home: BrokerHarness, run: PairingRun, code: Secret, from = UNKNOWN_BROWSER): Promise<void> {
  await Promise.all([
    home.run.pairings.receiveCallback(run.pairing.nonce, { kind: 'code', code }, from),
    home.time.pass(4 * SECOND),
  ]);
}

async function honestCode(home: BrokerHarness, run: PairingRun): Promise<Secret> {
  return new Secret(new URL(await home.login(run)).searchParams.get('code') ?? '');
}

/** Whose account the appliance is connected with. */
async function account(home: BrokerHarness, id: string): Promise<string> {
  const headers = { authorization: `Bearer ${await home.token(id)}` };
  const answer = await fetch(`${home.emulator.baseUrl}/api/whoami`, { headers });
  return answer.status === 200 ? (await answer.json()).user : 'nobody';
}

/** The portal serves no code for polling. */
const servesNone = (home: BrokerHarness) =>
  home.emulator.addFault({ kind: 'status', status: 404, endpoint: 'code/get', times: null });

test('a foreign code that the portal would accept is not exchanged, and a later honest login connects its account', async () => {
  const { home, id, run } = await waiting();
  await using _ = home;
  await bring(home, run, await foreignCode(home));
  expect(stateOf(run)).toBe('waiting');
  expect(home.exchanges).toBe(0);
  expect(run.pairing.spentCodes).toEqual([]);
  await bring(home, run, await honestCode(home, run), PHONE);
  expect(stateOf(run)).toBe('paired');
  expect(await account(home, id)).toBe('demo');
  expect(home.exchanges).toBe(1);
});

test('an honest login wins over a foreign code that arrives first, even if only polling brings its code', async () => {
  const { home, id, run } = await waiting();
  await using _ = home;
  const foreign = await foreignCode(home);
  await home.login(run);
  await bring(home, run, foreign);
  expect(stateOf(run)).toBe('paired');
  expect(await account(home, id)).toBe('demo');
  expect(home.exchanges).toBe(1);
});

test('a flood of forged codes ends no pairing, sends no code, and adds only a few polls', async () => {
  const { home, id, run } = await waiting();
  await using _ = home;
  const before = home.portal.requests('code').length;
  const forged: Promise<unknown>[] = [];
  for (let second = 0; second < 120; second++) {
    for (let each = 0; each < 5; each++) {
      const from = { address: `192.168.1.${100 + each}`, browserBinding: 'of-another-browser' };
      const code = new Secret(`forged-${second}-${each}`);
      forged.push(home.run.pairings.receiveCallback(run.pairing.nonce, { kind: 'code', code }, from));
    }
    await home.time.pass(SECOND);
  }
  await Promise.all([Promise.all(forged), home.time.pass(15 * SECOND)]);
  // Every 5 to 7.5 s, and six more and then one every 5 s.
  expect(home.portal.requests('code').length - before).toBeLessThan(65);
  expect(home.exchanges).toBe(0);
  expect(run.pairing.spentCodes).toEqual([]);
  expect(run.unconfirmed.length).toBeLessThanOrEqual(3);
  expect(home.events.filter(({ event }) => event === 'login_confirmation_needed').length).toBeLessThanOrEqual(12);
  await home.login(run);
  await home.time.pass(10 * SECOND);
  expect(stateOf(run)).toBe('paired');
  expect(await account(home, id)).toBe('demo');
});

test("a redirected code causes no poll while the portal's Retry-After lasts", async () => {
  const { home, run } = await waiting();
  await using _ = home;
  home.portal.fail('code', { kind: 'answer', status: 429, headers: { 'retry-after': '60' } });
  await home.time.pass(10 * SECOND);
  const before = home.portal.requests('code').length;
  await bring(home, run, new Secret('forged'));
  expect(home.portal.requests('code')).toHaveLength(before);
});

test('a redirected code that polling confirms is accepted from any browser', async () => {
  const { home, run } = await waiting();
  await using _ = home;
  const code = await honestCode(home, run);
  await bring(home, run, code, PHONE);
  expect(stateOf(run)).toBe('paired');
  expect(run.confirmationStatus(code)).toBeNull();
  expect(home.exchanges).toBe(1);
});

test('the hub polls again if the portal serves a redirected code a little late', async () => {
  const { home, run } = await waiting();
  await using _ = home;
  home.emulator.addFault({ kind: 'status', status: 404, endpoint: 'code/get', times: 2 });
  await bring(home, run, await honestCode(home, run));
  expect(stateOf(run)).toBe('paired');
  expect(run.unconfirmed).toEqual([]);
});

test('if polling brings no code, only the browser that the hub sent for this pairing brings an accepted code', async () => {
  const { home, id, run } = await waiting();
  await using _ = home;
  servesNone(home);
  const foreign = await codeByRedirect(home);
  await home.addAppliance('heater');
  const other = await home.beginPairing('heater');
  const ofOther = home.run.pairings.browserToken(other.pairing.id).reveal();
  await bring(home, run, foreign, { ...UNKNOWN_BROWSER, browserBinding: ofOther });
  expect(home.exchanges).toBe(0);
  const mark = home.run.pairings.browserToken(run.pairing.id).reveal();
  await bring(home, run, await honestCode(home, run), { ...PHONE, browserBinding: mark });
  expect(stateOf(run)).toBe('paired');
  expect(await account(home, id)).toBe('demo');
});

test('if polling brings no code, a login from any other browser counts once an installer confirms it', async () => {
  const { home, id, run } = await waiting();
  await using _ = home;
  servesNone(home);
  const foreign = await codeByRedirect(home);
  const honest = await honestCode(home, run);
  let changes = 0;
  run.watch(() => changes++);
  await bring(home, run, foreign);
  await bring(home, run, honest, PHONE);
  expect(stateOf(run)).toBe('waiting');
  expect(home.exchanges).toBe(0);
  expect(changes).toBeGreaterThanOrEqual(2);
  expect(run.unconfirmed.map(({ address }) => address)).toEqual([UNKNOWN_BROWSER.address, PHONE.address]);
  expect([run.confirmationStatus(foreign), run.confirmationStatus(honest)]).toEqual(['unconfirmed', 'unconfirmed']);
  const [, login] = run.unconfirmed;
  await run.confirm('a login of nobody');
  await run.confirm(login?.id ?? '');
  expect(stateOf(run)).toBe('paired');
  expect(await account(home, id)).toBe('demo');
  expect(run.unconfirmed).toEqual([]);
});

test('an unconfirmed login is dropped after a minute, and the pairing continues', async () => {
  const { home, run } = await waiting();
  await using _ = home;
  servesNone(home);
  const code = await honestCode(home, run);
  await bring(home, run, code, PHONE);
  const [login] = run.unconfirmed;
  await home.time.pass(61 * SECOND);
  expect(run.unconfirmed).toEqual([]);
  expect(run.confirmationStatus(code)).toBe('too_late');
  await run.confirm(login?.id ?? '');
  await bring(home, run, code, PHONE);
  expect(run.unconfirmed).toEqual([]);
  expect(stateOf(run)).toBe('waiting');
  expect(home.exchanges).toBe(0);
});

test('the token of a browser that the hub sent is not derived from the link, and changes with each run of the hub', async () => {
  const { home, run } = await waiting();
  await using _ = home;
  const { id, nonce } = run.pairing;
  const mark = home.run.pairings.browserToken(id).reveal();
  expect(mark).not.toContain(nonce);
  await home.stop();
  const { pairings } = await home.start();
  expect(pairings.browserToken(id).reveal()).not.toBe(mark);
  expect(pairings.get(id).shortKey).toBe(run.shortKey);
});

/** As {@link foreignCode}, where the portal serves none for polling: mallory's browser is brought to an address of mallory's. */
async function codeByRedirect({ emulator }: BrokerHarness): Promise<Secret> {
  const config = new URL(`${emulator.baseUrl}/external/oauth2helper/config/${emulator.clientId}`);
  config.searchParams.set('redirect_url', 'http://192.168.1.66/');
  const { authorize_url } = await (await fetch(config, { method: 'POST' })).json();
  const state = new URL(authorize_url).searchParams.get('state') ?? '';
  const { location } = await emulator.login({ state, user: 'mallory' });
  const code = new URL(location).searchParams.get('code') ?? '';
  rememberSecrets([code]);
  return new Secret(code);
}
