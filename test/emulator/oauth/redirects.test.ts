import { expect } from 'vitest';
import {
  ALICE,
  exchangeCode,
  FakeClock,
  get,
  HEATER,
  post,
  redirectLocation,
  requestConfig,
  startTestEmulator,
  test,
} from '../portal-client.ts';

const CALLBACK = 'http://192.168.1.7:8480/callback/nonce?keep=a%20b';
const CREDENTIALS = { username: ALICE.name, password: ALICE.password, action: 'login' };

test('a login redirects over code/set to the redirect_url and adds only the code', async () => {
  await using emulator = await startTestEmulator();
  const urls = await requestConfig(emulator, CALLBACK);
  const login = await post(urls.authorize_url, CREDENTIALS);
  expect(login.status).toBe(303);
  const set = new URL(redirectLocation(login));
  expect(set.origin + set.pathname).toBe(`${emulator.baseUrl}/external/oauth2helper/code/set/${HEATER.id}`);
  expect([...set.searchParams.keys()].sort()).toEqual(['code', 'state']);
  expect((await get(urls.code_url)).status).toBe(404);
  const helper = await get(set.href);
  expect(helper.status).toBe(302);
  expect(redirectLocation(helper)).toBe(`${CALLBACK}&code=${set.searchParams.get('code')}`);
  const polled = (await (await get(urls.code_url)).json()) as { code: string };
  expect(polled.code).toBe(set.searchParams.get('code'));
  expect((await exchangeCode(emulator, polled.code)).status).toBe(200);
});

test('without a redirect_url a login ends on a page that can be closed and reloaded', async () => {
  await using emulator = await startTestEmulator();
  const urls = await requestConfig(emulator);
  const set = redirectLocation(await post(urls.authorize_url, CREDENTIALS));
  for (const _ of [1, 2]) {
    const page = await get(set);
    expect(page.status).toBe(200);
    expect(await page.text()).toContain('You can close this page');
  }
  expect((await get(urls.code_url)).status).toBe(200);
});

test('a refused login redirects to the redirect_url with error=access_denied unless relayRefusal is off', async () => {
  for (const relayRefusal of [true, false]) {
    await using emulator = await startTestEmulator({ relayRefusal });
    const urls = await requestConfig(emulator, 'http://192.168.1.7:8480/callback/nonce');
    const refused = await post(urls.authorize_url, { action: 'refuse' });
    expect(refused.status).toBe(303);
    const helper = await get(redirectLocation(refused));
    if (relayRefusal)
      expect(redirectLocation(helper)).toBe('http://192.168.1.7:8480/callback/nonce?error=access_denied');
    else expect([helper.status, await helper.text()]).toEqual([200, expect.stringContaining('Refused')]);
    expect((await get(urls.code_url)).status).toBe(404);
  }
});

test('an ordinary authorization with code/set as the redirect_uri ends on a page that shows the code', async () => {
  await using emulator = await startTestEmulator({ autoLogin: true });
  const set = `${emulator.baseUrl}/external/oauth2helper/code/set/${HEATER.id}`;
  const query = `response_type=code&client_id=${HEATER.id}&redirect_uri=${encodeURIComponent(set)}&state=of%20its%20own`;
  const opened = redirectLocation(await get(`${emulator.frontendUrl}/sso/authorize?${query}`));
  expect(opened).toMatch(/&state=of%20its%20own$/);
  const page = await get(opened);
  const code = new URL(opened).searchParams.get('code') ?? '';
  expect([page.status, await page.text()]).toEqual([200, expect.stringContaining(`<code>${code}</code>`)]);
  expect((await exchangeCode(emulator, code, { redirect_uri: set })).status).toBe(200);
});

test('code/set does not show a code that is for another address, that is used or that has expired', async () => {
  const clock = new FakeClock();
  const tool = 'http://127.0.0.1:53682/';
  await using emulator = await startTestEmulator({
    clients: [{ ...HEATER, redirectUris: [tool] }],
    autoLogin: true,
    clock,
  });
  const set = `${emulator.baseUrl}/external/oauth2helper/code/set/${HEATER.id}`;
  const codeFor = async (address: string) => {
    const query = `response_type=code&client_id=${HEATER.id}&redirect_uri=${encodeURIComponent(address)}`;
    const opened = await get(`${emulator.frontendUrl}/sso/authorize?${query}`);
    return new URL(redirectLocation(opened)).searchParams.get('code') ?? '';
  };
  const [elsewhere, used, late] = [await codeFor(tool), await codeFor(set), await codeFor(set)];
  await exchangeCode(emulator, used);
  expect((await get(`${set}?code=${elsewhere}`)).status).toBe(400);
  expect((await get(`${set}?code=${used}`)).status).toBe(400);
  expect((await get(`${set}?code=${late}`)).status).toBe(200);
  const relayed = redirectLocation(await get((await requestConfig(emulator, CALLBACK)).authorize_url));
  clock.pass(46);
  expect((await get(`${set}?code=${late}`)).status).toBe(400);
  expect((await get(relayed)).status).toBe(400);
});
