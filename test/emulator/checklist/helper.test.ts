import { SignJWT, UnsecuredJWT } from 'jose';
import { expect } from 'vitest';
import {
  ALICE,
  FakeClock,
  get,
  HEATER,
  PUMP,
  requestConfig,
  startTestEmulator,
  stateOf,
  test,
} from '../portal-client.ts';

test('portal.md, 1: config accepts POST only, with any body', async ({ emulator }) => {
  const url = `${emulator.baseUrl}/external/oauth2helper/config/${HEATER.id}`;
  const wrong = await get(url);
  expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'POST']);
  const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' } });
  expect(response.status).toBe(200);
});

test('portal.md, 1: each state is unique, signed and bound to its client', async () => {
  await using emulator = await startTestEmulator({ autoLogin: true });
  const [one, two] = [await requestConfig(emulator), await requestConfig(emulator)];
  expect(stateOf(one.code_url)).not.toBe(stateOf(two.code_url));
  const response = await get(one.authorize_url.replace(HEATER.id, PUMP.id));
  expect([response.status, response.headers.get('location')]).toEqual([400, null]);
});

test('portal.md, 2: code_url returns the same 404 for an unknown client or state and before the login', async () => {
  const clock = new FakeClock();
  await using emulator = await startTestEmulator({ clock });
  const [waiting, urls] = [await requestConfig(emulator), await requestConfig(emulator)];
  const state = stateOf(urls.code_url);
  await emulator.login({ state, user: ALICE.name });
  const claims = { iss: 'latchkey-emulator', aud: HEATER.id, jti: 'x', exp: clock.wall / 1000 + 60 };
  const forged = await new SignJWT(claims).setProtectedHeader({ alg: 'HS256' }).sign(new Uint8Array(32));
  const [head = '', payload = '', mac = ''] = state.split('.');
  const changed = `${head}.${payload}.${mac.startsWith('A') ? 'B' : 'A'}${mac.slice(1)}`;
  const responses = new Set<string>();
  const ask = async (url: string) => {
    const response = await get(url);
    const headers = [...response.headers].filter(([name]) => name !== 'date');
    responses.add(JSON.stringify([response.status, headers, await response.text()]));
  };
  await ask(waiting.code_url);
  for (const other of ['nobody', PUMP.id]) await ask(urls.code_url.replace(HEATER.id, other));
  for (const bad of [forged, new UnsecuredJWT(claims).encode(), changed, 'x', '', `${state}&state=${state}`]) {
    await ask(urls.code_url.replace(/state=.*/, `state=${bad}`));
  }
  expect((await get(urls.code_url)).status).toBe(200);
  clock.pass(1801);
  await ask(waiting.code_url);
  expect([...responses]).toEqual([expect.stringMatching(/^\[404,/)]);
});
