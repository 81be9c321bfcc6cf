import { expect } from 'vitest';
import {
  ALICE,
  expectRejections,
  get,
  requestConfig,
  requestEmulatorApi,
  startTestEmulator,
  stateOf,
  test,
} from '../portal-client.ts';

const CALLBACK = 'http://192.168.1.7:8480/callback/nonce';

test("a login by the emulator's API stores the code, and its location is the next address of a browser", async () => {
  await using emulator = await startTestEmulator();
  const urls = await requestConfig(emulator, CALLBACK);
  const response = await requestEmulatorApi(emulator, 'POST', 'login', {
    state: stateOf(urls.code_url),
    user: ALICE.name,
  });
  expect(response.status).toBe(200);
  const { location } = (await response.json()) as { location: string };
  const { code } = (await (await get(urls.code_url)).json()) as { code: string };
  expect(location).toBe(`${CALLBACK}?code=${code}`);
});

test("the emulator's API answers 400 to an invalid login, and names the member and what is allowed", async ({
  emulator,
}) => {
  const state = stateOf((await requestConfig(emulator)).code_url);
  await expectRejections(emulator, 'POST', 'login', [
    ['{', /^body: must be valid JSON$/],
    ['[]', /^body: must be an object \(found an array\)$/],
    [{ state, user: ALICE.name, denied: true }, /^denied: is unknown; allowed: authorize_url, state, user, deny$/],
    [{ state, user: ALICE.name, deny: 'yes' }, /^deny: must be true or false \(found "yes"\)$/],
    [{ user: ALICE.name }, /^authorize_url: must be given, or else state \(found neither\)$/],
    [{ state, user: 'bob' }, /^user: must be one of alice /],
    [{ state }, /^user: must be one of alice /],
    [{ state: 'x', user: ALICE.name }, /^state: must be the valid state of a config response /],
  ]);
});
