import { expect } from 'vitest';
import { rememberSecrets } from '../../support/logs.ts';
import { ALICE, get, PUMP, post, requestConfig, startTestEmulator, test } from '../portal-client.ts';

/** The cookie that the response sets, as a browser sends it back. */
function cookieOf(response: Response): string {
  const [pair = ''] = (response.headers.get('set-cookie') ?? '').split(';');
  if (pair !== '') rememberSecrets([pair.split('=')[1] ?? '']);
  return pair;
}

/** Logs in as ALICE, with the password. */
async function logIn(url: string): Promise<{ response: Response; cookie: string }> {
  const response = await post(url, { username: ALICE.name, password: ALICE.password, action: 'login' });
  return { response, cookie: cookieOf(response) };
}

const withCookie = (cookie: string) => ({ cookie });

test('after a login in a browser the login page asks only for a confirmation, also for another client', async () => {
  await using emulator = await startTestEmulator();
  const { response, cookie } = await logIn((await requestConfig(emulator)).authorize_url);
  expect(response.status).toBe(303);
  expect(response.headers.get('set-cookie')).toMatch(
    /^emulator_login_\d+=[\w-]{43}; Path=\/sso; HttpOnly; SameSite=Lax$/,
  );

  const next = await requestConfig(emulator, undefined, PUMP.id);
  const page = await get(next.authorize_url, withCookie(cookie));
  const html = await page.text();
  expect(html).toContain(`Continue as ${ALICE.name}`);
  expect(html).not.toContain('password');
  const afterReset = await post(next.authorize_url, { action: 'continue' }, withCookie(cookie));
  expect([afterReset.status, afterReset.headers.get('location')]).toEqual([303, expect.stringContaining('code=')]);
  await get(afterReset.headers.get('location') ?? '');
  expect((await get(next.code_url)).status).toBe(200);
});

test('a person who is logged in can refuse, or log in as another user', async ({ emulator }) => {
  const { cookie } = await logIn((await requestConfig(emulator)).authorize_url);
  const next = await requestConfig(emulator);
  const other = await post(next.authorize_url, { action: 'other' }, withCookie(cookie));
  expect([other.status, await other.text()]).toEqual([200, expect.stringContaining('id="password"')]);
  const refused = await post(next.authorize_url, { action: 'refuse' }, withCookie(cookie));
  expect(refused.headers.get('location')).toContain('error=access_denied');
});

test('the login page asks for a password without its cookie, with a wrong cookie, and after a reset', async ({
  emulator,
}) => {
  const { cookie } = await logIn((await requestConfig(emulator)).authorize_url);
  for (const headers of [{ cookie: 'a=b' }, { cookie: `${cookie}x` }, { cookie: cookie.replace(/=.*/, '=') }]) {
    const { authorize_url } = await requestConfig(emulator);
    expect(await (await get(authorize_url, headers)).text()).toContain('id="password"');
    expect((await post(authorize_url, { action: 'continue' }, headers)).status).toBe(403);
  }
  await emulator.reset();
  const { authorize_url } = await requestConfig(emulator);
  expect(await (await get(authorize_url, withCookie(cookie))).text()).toContain('id="password"');
});

test('the emulator remembers no login after a wrong password or with forgetLogins', async ({ emulator }) => {
  const { authorize_url } = await requestConfig(emulator);
  const wrong = await post(authorize_url, { username: ALICE.name, password: 'wrong', action: 'login' });
  expect(wrong.headers.get('set-cookie')).toBeNull();
  const { cookie } = await logIn(authorize_url);
  emulator.change({ forgetLogins: true });
  const next = await requestConfig(emulator);
  expect(await (await get(next.authorize_url, withCookie(cookie))).text()).toContain('id="password"');
  expect((await logIn(next.authorize_url)).cookie).toBe('');
});

test('the request log of the emulator never contains the login cookie, even if it shows secrets', async () => {
  await using emulator = await startTestEmulator({ showSecrets: true });
  const { cookie } = await logIn((await requestConfig(emulator)).authorize_url);
  await get((await requestConfig(emulator)).authorize_url, withCookie(cookie));
  expect(JSON.stringify(emulator.requests)).not.toContain(cookie.split('=')[1]);
});
