import { expect, test } from 'vitest';
import {
  ALICE,
  exchangeCode,
  get,
  HEATER,
  obtainCode,
  obtainTokens,
  refreshTokens,
  requestConfig,
  requestEmulatorApi,
  startTestEmulator,
  stateOf,
  whoami,
} from './portal-client.ts';

test('a reset clears tokens, log, findings, clock and settings of the emulator, and keeps its ports and clients', async () => {
  await using emulator = await startTestEmulator({ refreshGrace: 1 });
  const before = await obtainTokens(emulator);
  await refreshTokens(emulator, before.refresh_token);
  const code = await obtainCode(emulator);
  const open = await requestConfig(emulator);
  await get(open.authorize_url);
  emulator.change({ refreshGrace: 7, autoLogin: true });
  emulator.advance(60);
  const reset = await requestEmulatorApi(emulator, 'POST', 'reset', {});
  expect([reset.status, await reset.json()]).toEqual([200, {}]);

  expect([emulator.grants(), emulator.logins(), emulator.requests]).toEqual([[], [], []]);
  expect(Object.values(emulator.findings()).flat()).toEqual([]);
  expect(Object.values(emulator.observations)).toEqual([0, 0, 0, 0]);
  expect(emulator.clock.offset).toBe(0);
  expect(emulator.settings).toMatchObject({ refreshGrace: 1, autoLogin: false });
  expect((await whoami(emulator, before.access_token)).status).toBe(401);
  expect((await refreshTokens(emulator, before.refresh_token)).status).toBe(400);
  expect((await exchangeCode(emulator, code)).status).toBe(400);
  expect((await get(open.authorize_url)).status).toBe(400);
  expect((await get(open.code_url)).status).toBe(404);
  await expect(emulator.login({ state: stateOf(open.code_url), user: ALICE.name })).rejects.toThrow(/not issued/);

  expect(emulator.clientId).toBe(HEATER.id);
  const after = await obtainTokens(emulator);
  expect((await whoami(emulator, after.access_token)).status).toBe(200);
  expect(emulator.requests[0]?.number).toBeGreaterThan(5);
});

test('two emulators in one process share nothing, and a reset of one does not change the other', async () => {
  await using one = await startTestEmulator();
  await using two = await startTestEmulator();
  const held = await obtainTokens(two);
  expect([one.grants().length, one.requests.length, one.secretsIssued().length]).toEqual([0, 0, 0]);
  expect((await whoami(one, held.access_token)).status).toBe(401);
  expect((await refreshTokens(one, held.refresh_token)).status).toBe(400);
  one.change({ basic: 'refuse' });
  one.advance(3600);
  one.addFault({ kind: 'origin_down', origin: 'frontend' });
  expect([two.clock.offset, two.faults.length, (await whoami(two, held.access_token)).status]).toEqual([0, 0, 200]);
  await one.reset();
  expect([two.clock.offset, two.settings.basic, two.grants().length]).toEqual([0, 'accept', 1]);
  expect((await refreshTokens(two, held.refresh_token)).status).toBe(200);
});
