import { expect } from 'vitest';
import type { Emulator } from '../../../src/emulator/index.ts';
import {
  ALICE,
  get,
  HEATER,
  obtainCode,
  PUMP,
  post,
  redirectLocation,
  requestConfig,
  startTestEmulator,
  stateOf,
  test,
} from '../portal-client.ts';

const TOOL = 'http://127.0.0.1:53682/back?keep=a%20b';
const LOGIN = { username: ALICE.name, password: ALICE.password, action: 'login' };
const REFUSE = { action: 'refuse' };
/** A state that decoding and encoding would change. */
const RAW_STATE = 'state=a%2Bb+c%7e~%2F%3d';

const withTool = (autoLogin = false) =>
  startTestEmulator({ clients: [{ ...HEATER, redirectUris: [TOOL] }, PUMP], autoLogin });

function ordinary(emulator: Emulator, more = RAW_STATE, responseType = 'response_type=code&'): string {
  const redirectUri = encodeURIComponent(TOOL);
  return `${emulator.frontendUrl}/sso/authorize?${responseType}client_id=${HEATER.id}&redirect_uri=${redirectUri}&${more}`;
}

test('RFC 6749, 3.1: a repeated parameter leads to an error page', async () => {
  await using emulator = await withTool(true);
  const twice = await get(ordinary(emulator, `${RAW_STATE}&${RAW_STATE}`));
  expect([twice.status, redirectLocation(twice)]).toEqual([400, '']);
});

test('RFC 6749, 3.1.2: the query of a redirect address is kept', async () => {
  await using emulator = await withTool(true);
  expect(redirectLocation(await get(ordinary(emulator)))).toMatch(
    /^http:\/\/127\.0\.0\.1:53682\/back\?keep=a%20b&code=[\w-]+&/,
  );
  const urls = await requestConfig(emulator, TOOL);
  const helper = await get(redirectLocation(await get(urls.authorize_url)));
  expect(redirectLocation(helper)).toMatch(/^http:\/\/127\.0\.0\.1:53682\/back\?keep=a%20b&code=[\w-]+$/);
});

test('RFC 6749, 4.1.2: state comes back byte for byte, and none is added to a request without one', async () => {
  await using emulator = await withTool(true);
  expect(redirectLocation(await get(ordinary(emulator)))).toMatch(/&state=a%2Bb\+c%7e~%2F%3d$/);
  expect(redirectLocation(await get(ordinary(emulator, 'x=1')))).not.toContain('state');
});

test('RFC 6749, 4.1.2.1: a refused login comes back as access_denied, with the state byte for byte', async () => {
  await using emulator = await withTool();
  const refused = redirectLocation(await post(ordinary(emulator), REFUSE));
  expect(refused).toBe(`${TOOL}&error=access_denied&${RAW_STATE}`);
});

test('RFC 6749, 4.1.2.1: other errors go to the registered redirect address, with the state', async () => {
  await using emulator = await withTool(true);
  const sent = async (url: string) => redirectLocation(await get(url));
  const token = ordinary(emulator, RAW_STATE, 'response_type=token&');
  expect(await sent(token)).toBe(`${TOOL}&error=unsupported_response_type&${RAW_STATE}`);
  expect(await sent(ordinary(emulator, RAW_STATE, ''))).toBe(`${TOOL}&error=invalid_request&${RAW_STATE}`);
  const scope = ordinary(emulator, `${RAW_STATE}&scope=two++spaces`);
  expect(await sent(scope)).toBe(`${TOOL}&error=invalid_scope&${RAW_STATE}`);
});

test('RFC 6749, 4.1.2.1: an unregistered client or redirect address leads to an error page and never to a redirect', async () => {
  await using emulator = await withTool(true);
  const url = ordinary(emulator);
  const evil = encodeURIComponent('http://evil.example/');
  const cases = [
    url.replace(HEATER.id, 'nobody'),
    url.replace(HEATER.id, PUMP.id),
    url.replace(encodeURIComponent(TOOL), evil),
    url.replace('response_type=code', 'response_type=token').replace(encodeURIComponent(TOOL), evil),
  ];
  for (const bad of cases) {
    for (const response of [await get(bad), await post(bad, LOGIN), await post(bad, REFUSE)]) {
      expect([response.status, redirectLocation(response)], bad).toEqual([400, '']);
      expect(response.headers.get('content-type')).toMatch(/^text\/html/);
    }
  }
});

test('RFC 9700, 2.1: redirect addresses are compared as exact strings', async () => {
  await using emulator = await withTool(true);
  for (const near of [`${TOOL}&`, TOOL.toUpperCase(), TOOL.replace('back', './back'), TOOL.slice(0, -1), `${TOOL}#x`]) {
    const response = await get(ordinary(emulator).replace(encodeURIComponent(TOOL), encodeURIComponent(near)));
    expect([response.status, redirectLocation(response)], near).toEqual([400, '']);
  }
});

test('RFC 8252, 7.3: at /oauth2/ the port of a redirect address on the loopback interface does not count', async () => {
  await using emulator = await withTool();
  const open = (address: string) => {
    const url = ordinary(emulator).replace('/sso/', '/oauth2/');
    return post(url.replace(encodeURIComponent(TOOL), encodeURIComponent(address)), REFUSE);
  };
  const accepted = [TOOL.replace('53682', '1024'), TOOL.replace(':53682', '')];
  for (const address of accepted) expect(redirectLocation(await open(address))).toContain(`${address}&error=`);
  for (const other of [TOOL.replace('127.0.0.1', 'localhost'), TOOL.replace('53682', '1/x'), `${accepted[0]}&`])
    expect([(await open(other)).status, redirectLocation(await open(other))], other).toEqual([400, '']);
});

test('RFC 9700, 4.11.2: the signed state contains the redirect_url, so that the helper is no open redirector', async () => {
  await using emulator = await startTestEmulator({ autoLogin: true });
  const urls = await requestConfig(emulator, 'http://192.168.1.7:8480/callback');
  const evil = encodeURIComponent('http://evil.example/');
  const set = redirectLocation(await get(`${urls.authorize_url}&redirect_url=${evil}`));
  expect(redirectLocation(await get(`${set}&redirect_url=${evil}`))).toMatch(
    /^http:\/\/192\.168\.1\.7:8480\/callback\?code=/,
  );
  const [head = '', body = '', mac = ''] = stateOf(urls.code_url).split('.');
  const claims = JSON.parse(Buffer.from(body, 'base64url').toString()) as object;
  const changed = Buffer.from(JSON.stringify({ ...claims, redirect_url: 'http://evil.example/' }));
  const forged = `${head}.${changed.toString('base64url')}.${mac}`;
  for (const state of [forged, stateOf(urls.code_url).replace(/.$/, ''), 'x']) {
    const code = new URL(set).searchParams.get('code');
    const codeSetUrl = `${emulator.baseUrl}/external/oauth2helper/code/set/${HEATER.id}?state=${state}`;
    expect(redirectLocation(await get(`${codeSetUrl}&code=${code}`))).toBe('');
    expect(redirectLocation(await get(`${codeSetUrl}&error=access_denied`))).toBe('');
  }
});

test('RFC 9700, 4.12: the response to the login form is 303, so that the browser does not send the password on to the next address', async () => {
  await using emulator = await withTool();
  for (const form of [LOGIN, REFUSE]) expect((await post(ordinary(emulator), form)).status).toBe(303);
});

test('RFC 9700, 4.16: no page can be framed', async () => {
  await using emulator = await withTool();
  const urls = await requestConfig(emulator);
  const pages = [
    await get(ordinary(emulator)),
    await get(ordinary(emulator).replace(HEATER.id, 'nobody')),
    await post(ordinary(emulator), { ...LOGIN, password: 'wrong' }),
    await get(redirectLocation(await post(urls.authorize_url, LOGIN))),
  ];
  for (const page of pages) {
    expect(page.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
    expect(page.headers.get('x-frame-options')).toBe('DENY');
  }
});

test('RFC 9700, 4.2.4: codes and states do not leak through the Referer header', async () => {
  await using emulator = await withTool();
  const urls = await requestConfig(emulator);
  const done = await get(redirectLocation(await post(urls.authorize_url, LOGIN)));
  for (const page of [await get(urls.authorize_url), done]) {
    expect(page.headers.get('referrer-policy')).toBe('no-referrer');
  }
});

test('RFC 9700, 4.7: the helper accepts a code only with the state that it was issued for', async () => {
  await using emulator = await startTestEmulator({ autoLogin: true });
  const victim = await requestConfig(emulator);
  const attackerCode = redirectLocation(await get((await requestConfig(emulator)).authorize_url));
  const planted = attackerCode.replace(/state=[^&]*/, `state=${stateOf(victim.code_url)}`);
  const pumps = await obtainCode(emulator, PUMP.id);
  for (const url of [
    planted,
    planted.replace(/code=[^&]*/, `code=${pumps}`),
    planted.replace(/code=[^&]*/, 'code=x'),
  ]) {
    expect([(await get(url)).status, redirectLocation(await get(url))], url).toEqual([400, '']);
  }
  for (const url of [`${planted}&code=x`, attackerCode.replace(/\?.*/, '')]) expect((await get(url)).status).toBe(400);
  expect((await get(attackerCode.replace(HEATER.id, 'nobody'))).status).toBe(404);
  expect((await get(victim.code_url)).status).toBe(404);
});
