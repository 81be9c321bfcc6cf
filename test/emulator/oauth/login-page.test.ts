import { expect } from 'vitest';
import { ALICE, get, post, requestConfig, startTestEmulator, test } from '../portal-client.ts';

test('the login page shows the escaped client name, and is usable on a phone and with a screen reader', async ({
  emulator,
}) => {
  const page = await get((await requestConfig(emulator)).authorize_url);
  const html = await page.text();
  expect(page.status).toBe(200);
  expect(html).toContain('Heater &#60;7&#62;');
  expect(html).not.toContain('<7>');
  expect(html).toContain('name="viewport" content="width=device-width');
  for (const id of ['username', 'password'])
    expect(html).toMatch(new RegExp(`<label for="${id}">[^]*<input id="${id}"`));
  expect(html).toContain('autofocus');
  expect(html).toContain('>Refuse</button>');
});

test('the login page can not be framed, cached or scripted, and its form may lead anywhere', async ({ emulator }) => {
  const page = await get((await requestConfig(emulator, 'http://192.168.1.7:8480/x')).authorize_url);
  const policy = page.headers.get('content-security-policy') ?? '';
  expect(policy).toContain("default-src 'none'");
  expect(policy).toContain("frame-ancestors 'none'");
  // Browsers apply it to every redirect after the form too, and a callback may redirect to any origin.
  expect(policy).not.toContain('form-action');
  expect(policy).not.toContain('unsafe');
  expect(page.headers.get('cache-control')).toBe('no-store');
  expect(page.headers.get('referrer-policy')).toBe('no-referrer');
});

test('a wrong user name or password shows the login page again with a message, and issues no code', async ({
  emulator,
}) => {
  const urls = await requestConfig(emulator);
  for (const form of [
    { username: ALICE.name, password: 'wrong' },
    { username: 'bob', password: ALICE.password },
    { username: ALICE.name },
    {},
  ]) {
    const page = await post(urls.authorize_url, { ...form, action: 'login' });
    expect([page.status, await page.text()]).toEqual([403, expect.stringContaining('is wrong. Please try again')]);
  }
  expect((await get(urls.code_url)).status).toBe(404);
});

test('after a wrong password the login page keeps the user name and drops the password', async () => {
  await using emulator = await startTestEmulator();
  const { authorize_url } = await requestConfig(emulator);
  const username = 'bob"><b>';
  const again = await (await post(authorize_url, { username, password: 'not-it', action: 'login' })).text();
  expect(again).toMatch(/<input id="username"[^>]* value="bob&#34;&#62;&#60;b&#62;"/);
  expect(again).toMatch(/<input id="password"[^>]* autofocus>/);
  expect(again).not.toContain('not-it');
});

test('the login page shows how to log in only if the emulator was given no users', async () => {
  await using ours = await startTestEmulator();
  expect(await (await get((await requestConfig(ours)).authorize_url)).text()).not.toContain('emulated');
  await using bare = await startTestEmulator({ users: undefined });
  const urls = await requestConfig(bare);
  expect(await (await get(urls.authorize_url)).text()).toContain('log in as <b>demo</b>');
  expect((await post(urls.authorize_url, { username: 'demo', password: 'demo' })).status).toBe(303);
});
