import { expect } from 'vitest';
import {
  ALICE,
  exchangeCode,
  get,
  HEATER,
  obtainCode,
  PUMP,
  postConfig,
  requestConfig,
  startTestEmulator,
  stateOf,
  test,
} from '../portal-client.ts';

test('config returns the three URLs of docs/portal.md with their two origins', async ({ emulator }) => {
  const urls = await requestConfig(emulator);
  const authorize = new URL(urls.authorize_url);
  const code = new URL(urls.code_url);
  expect(emulator.baseUrl).not.toBe(emulator.frontendUrl);
  expect([authorize.origin, authorize.pathname]).toEqual([emulator.frontendUrl, '/sso/authorize']);
  expect([...authorize.searchParams.keys()]).toEqual(['response_type', 'client_id', 'state']);
  expect(authorize.searchParams.get('response_type')).toBe('code');
  expect(code.origin + code.pathname).toBe(`${emulator.baseUrl}/external/oauth2helper/code/get/${HEATER.id}`);
  expect([...code.searchParams.keys()]).toEqual(['state']);
  expect(urls.accesstoken_request_url).toBe(`${emulator.frontendUrl}/sso/token`);
  expect(stateOf(urls.code_url)).toBe(stateOf(urls.authorize_url));
});

test('config and the token endpoint write \\/ and \\u0026 in JSON strings, as the portal does', async ({
  emulator,
}) => {
  const text = await (await postConfig(emulator)).text();
  expect(text).toContain('http:\\/\\/127.0.0.1');
  expect(text).toContain('response_type=code\\u0026client_id=');
  expect(text.replaceAll('\\/', '')).not.toContain('/');
  expect(text).not.toContain('&');
  const response = await exchangeCode(emulator, await obtainCode(emulator), { scope: 'a/b&c' });
  expect(await response.text()).toContain('"a\\/b\\u0026c"');
});

test('config answers 404 to an unknown client, and 400 to a redirect_url that is not an http or https URL', async () => {
  await using emulator = await startTestEmulator();
  expect((await postConfig(emulator, undefined, PUMP.id.replace('02', '03'))).status).toBe(404);
  for (const bad of ['ftp://x/', 'javascript:alert(1)', '/callback', 'not a url', `http://x/${'y'.repeat(2000)}`]) {
    expect((await postConfig(emulator, bad)).status, bad.slice(0, 30)).toBe(400);
  }
  const twice = `${emulator.baseUrl}/external/oauth2helper/config/${HEATER.id}?redirect_url=http://a&redirect_url=http://b`;
  expect((await fetch(twice, { method: 'POST' })).status).toBe(400);
  for (const good of [
    'http://192.168.1.7:8480/callback/x',
    'https://a.example',
    'http://[fd00::1]/x',
    'http://hub.local',
  ]) {
    expect((await postConfig(emulator, good)).status, good).toBe(200);
  }
});

test('config refuses every redirect_url of a client with that option, and the client can still poll', async () => {
  await using emulator = await startTestEmulator({ clients: [{ ...HEATER, redirectUrl: 'refuse' }] });
  expect((await postConfig(emulator, 'http://192.168.1.7:8480/callback/x')).status).toBe(400);
  expect((await postConfig(emulator)).status).toBe(200);
});

test('code_url answers 404 until there is a code, and then returns it until it expires', async ({
  emulator,
  clock,
}) => {
  const urls = await requestConfig(emulator);
  expect((await get(urls.code_url)).status).toBe(404);
  await emulator.login({ state: stateOf(urls.code_url), user: ALICE.name });
  const first = await get(urls.code_url);
  expect(first.status).toBe(200);
  expect(Object.keys((await first.json()) as object)).toEqual(['code']);
  clock.pass(44);
  expect((await get(urls.code_url)).status).toBe(200);
  clock.pass(2);
  expect((await get(urls.code_url)).status).toBe(404);
});
