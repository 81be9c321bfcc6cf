import { expect, test } from 'vitest';
import type { PairingRun } from '../../src/broker/pairings/pairing-run.ts';
import type { CallbackBrowser } from '../../src/core/lan-service.ts';
import { Secret } from '../../src/core/secret.ts';
import { SECOND } from '../core/samples.ts';
import { rememberSecrets } from '../support/logs.ts';
import { BrokerHarness, UNKNOWN_BROWSER } from './broker-harness.ts';
import { expectPairedByPolling, REDIRECT, stateOf } from './logins.ts';

const PHONE: CallbackBrowser = { address: '192.168.1.50', browserToken: null };

/** A broker with a pairing that waits for a login, and a portal where mallory has an account too. */
async function startPairing() {
  const users = ['demo', 'mallory'].map((name) => ({ name, password: name }));
  const { harness, appliance } = await BrokerHarness.startUnpaired({ ...REDIRECT, emulator: { users } });
  return { harness, id: appliance.id, run: await harness.beginPairing('wallbox') };
}

/** A code of mallory's own login for the hub's client; the portal accepts it. */
async function foreignCode({ emulator }: BrokerHarness): Promise<Secret> {
  const config = `${emulator.baseUrl}/external/oauth2helper/config/${emulator.clientId}`;
  const { authorize_url, code_url } = await (await fetch(config, { method: 'POST' })).json();
  await emulator.login({ state: new URL(authorize_url).searchParams.get('state') ?? '', user: 'mallory' });
  const { code } = await (await fetch(code_url)).json();
  return new Secret(code);
}

/** Sends a code to the callback and waits until the hub has checked it. */
async function sendCode(
  harness: BrokerHarness,
  run: PairingRun,
  code: Secret,
  from = UNKNOWN_BROWSER,
  issuer: { issuer?: string } = {},
): Promise<void> {
  await Promise.all([
    harness.run.pairings.receive({ nonce: run.pairing.nonce, response: { kind: 'code', code, ...issuer } }, from),
    harness.time.pass(4 * SECOND),
  ]);
}

async function honestCode(harness: BrokerHarness, run: PairingRun): Promise<Secret> {
  return new Secret(new URL(await harness.login(run)).searchParams.get('code') ?? '');
}

/** The account that the appliance is connected with. */
async function account(harness: BrokerHarness, id: string): Promise<string> {
  const headers = { authorization: `Bearer ${await harness.token(id)}` };
  const response = await fetch(`${harness.emulator.baseUrl}/api/whoami`, { headers });
  return response.status === 200 ? (await response.json()).user : 'nobody';
}

/** Polling gets no code from the portal. */
const disablePolling = (harness: BrokerHarness) =>
  harness.emulator.addFault({ kind: 'status', status: 404, endpoint: 'code/get', times: null });

test('a foreign code that the portal would accept is not exchanged, and a later honest login connects its account', async () => {
  const { harness, id, run } = await startPairing();
  await sendCode(harness, run, await foreignCode(harness));
  expect(stateOf(run)).toBe('waiting');
  expect(harness.exchanges).toBe(0);
  expect(run.pairing.spentCodes).toEqual([]);
  await sendCode(harness, run, await honestCode(harness, run), PHONE);
  expect(stateOf(run)).toBe('paired');
  expect(await account(harness, id)).toBe('demo');
  expect(harness.exchanges).toBe(1);
});

test('an honest login wins over a foreign code that arrives first, even if only polling brings its code', async () => {
  const { harness, id, run } = await startPairing();
  const foreign = await foreignCode(harness);
  await harness.login(run);
  await sendCode(harness, run, foreign);
  expect(stateOf(run)).toBe('paired');
  expect(await account(harness, id)).toBe('demo');
  expect(harness.exchanges).toBe(1);
});

test('a flood of forged codes ends no pairing, sends no code, and adds only a few polls', async () => {
  const { harness, id, run } = await startPairing();
  const before = harness.portal.requests('code').length;
  const forged: Promise<unknown>[] = [];
  for (let second = 0; second < 120; second++) {
    for (let device = 0; device < 5; device++) {
      const from = { address: `192.168.1.${100 + device}`, browserToken: 'of-another-browser' };
      const code = new Secret(`forged-${second}-${device}`);
      forged.push(harness.run.pairings.receive({ nonce: run.pairing.nonce, response: { kind: 'code', code } }, from));
    }
    await harness.time.pass(SECOND);
  }
  await Promise.all([Promise.all(forged), harness.time.pass(15 * SECOND)]);
  // Regular polls every 5 to 7.5 s; checks of codes add a burst of six, then one every 5 s.
  expect(harness.portal.requests('code').length - before).toBeLessThan(65);
  expect(harness.exchanges).toBe(0);
  expect(run.pairing.spentCodes).toEqual([]);
  expect(run.responses.unconfirmed).toHaveLength(3);
  const announced = harness.events.filter(({ event }) => event === 'login_confirmation_needed').length;
  expect(announced).toBeGreaterThan(0);
  expect(announced).toBeLessThanOrEqual(12);
  await expectPairedByPolling(harness, run);
  expect(await account(harness, id)).toBe('demo');
});

test("a redirected code causes no poll while the portal's Retry-After lasts", async () => {
  const { harness, run } = await startPairing();
  harness.portal.fail('code', { kind: 'answer', status: 429, headers: { 'retry-after': '60' } });
  await harness.time.pass(10 * SECOND);
  const before = harness.portal.requests('code').length;
  await sendCode(harness, run, new Secret('forged'));
  expect(harness.portal.requests('code')).toHaveLength(before);
});

test('a redirected code that polling confirms is accepted from any browser', async () => {
  const { harness, run } = await startPairing();
  const code = await honestCode(harness, run);
  await sendCode(harness, run, code, PHONE);
  expect(stateOf(run)).toBe('paired');
  expect(run.responses.confirmationStatus(code)).toBeNull();
  expect(harness.exchanges).toBe(1);
});

test('the hub polls again if the portal serves a redirected code a little late', async () => {
  const { harness, run } = await startPairing();
  harness.emulator.addFault({ kind: 'status', status: 404, endpoint: 'code/get', times: 2 });
  await sendCode(harness, run, await honestCode(harness, run));
  expect(stateOf(run)).toBe('paired');
  expect(run.responses.unconfirmed).toEqual([]);
});

test('if polling brings no code, only the browser that the hub sent for this pairing brings an accepted code', async () => {
  const { harness, id, run } = await startPairing();
  disablePolling(harness);
  const foreign = await codeByRedirect(harness);
  await harness.addAppliance('heater');
  const other = await harness.beginPairing('heater');
  const otherBinding = harness.run.pairings.browserToken(other.pairing.id).reveal();
  await sendCode(harness, run, foreign, { ...UNKNOWN_BROWSER, browserToken: otherBinding });
  expect(harness.exchanges).toBe(0);
  const mark = harness.run.pairings.browserToken(run.pairing.id).reveal();
  await sendCode(harness, run, await honestCode(harness, run), { ...PHONE, browserToken: mark });
  expect(stateOf(run)).toBe('paired');
  expect(await account(harness, id)).toBe('demo');
});

test('if polling brings no code, a login from any other browser counts once an installer confirms it', async () => {
  const { harness, id, run } = await startPairing();
  disablePolling(harness);
  const foreign = await codeByRedirect(harness);
  const honest = await honestCode(harness, run);
  let changes = 0;
  run.runner.watch(() => changes++);
  await sendCode(harness, run, foreign);
  await sendCode(harness, run, honest, PHONE);
  expect(stateOf(run)).toBe('waiting');
  expect(harness.exchanges).toBe(0);
  expect(changes).toBeGreaterThanOrEqual(2);
  expect(run.responses.unconfirmed.map(({ address }) => address)).toEqual([UNKNOWN_BROWSER.address, PHONE.address]);
  expect([run.responses.confirmationStatus(foreign), run.responses.confirmationStatus(honest)]).toEqual([
    'unconfirmed',
    'unconfirmed',
  ]);
  const [, login] = run.responses.unconfirmed;
  await run.responses.confirm('a login of nobody');
  await run.responses.confirm(login?.id ?? '');
  expect(stateOf(run)).toBe('paired');
  expect(await account(harness, id)).toBe('demo');
  expect(run.responses.unconfirmed).toEqual([]);
});

test('an unconfirmed login is dropped after a minute, and the pairing continues', async () => {
  const { harness, run } = await startPairing();
  disablePolling(harness);
  const code = await honestCode(harness, run);
  await sendCode(harness, run, code, PHONE);
  const [login] = run.responses.unconfirmed;
  await harness.time.pass(61 * SECOND);
  expect(run.responses.unconfirmed).toEqual([]);
  expect(run.responses.confirmationStatus(code)).toBe('too_late');
  await run.responses.confirm(login?.id ?? '');
  await sendCode(harness, run, code, PHONE);
  expect(run.responses.unconfirmed).toEqual([]);
  expect(stateOf(run)).toBe('waiting');
  expect(harness.exchanges).toBe(0);
});

test('the token of a browser that the hub sent is not derived from the link, and a restart of the hub keeps it', async () => {
  const { harness, run } = await startPairing();
  const { id, nonce } = run.pairing;
  const mark = harness.run.pairings.browserToken(id).reveal();
  expect(mark).not.toContain(nonce);
  const { pairings } = await harness.restart();
  expect(pairings.browserToken(id).reveal()).toBe(mark);
  expect(pairings.get(id).shortKey).toBe(run.shortKey);
});

/** Like {@link foreignCode}, if polling gets no code: the portal redirects mallory's browser to mallory's own address. */
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
