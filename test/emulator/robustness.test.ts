import { expect } from 'vitest';
import { IS_LONG_FORM } from '../support/long.ts';
import {
  ALICE,
  exchangeCode,
  obtainTokens,
  parseTokens,
  post,
  refreshTokens,
  requestConfig,
  stateOf,
  test,
} from './portal-client.ts';

const GRANTS = IS_LONG_FORM ? 200 : 15;

test('the emulator answers 413 to a body that is too large', async ({ emulator }) => {
  const response = await post(`${emulator.frontendUrl}/sso/token`, `code=${'x'.repeat(70_000)}`);
  expect(response.status).toBe(413);
});

test('a flood of config requests displaces no login that has begun', async ({ emulator }) => {
  const urls = await requestConfig(emulator);
  await emulator.login({ state: stateOf(urls.code_url), user: ALICE.name });
  for (let i = 0; i < 20; i += 1) await Promise.all(Array.from({ length: 25 }, () => requestConfig(emulator)));
  const { code } = (await (await fetch(urls.code_url)).json()) as { code: string };
  expect((await exchangeCode(emulator, code)).status).toBe(200);
});

test(`${10 * GRANTS} refreshes of ${GRANTS} grants at a time leave every grant valid`, async ({ emulator }) => {
  const grants = await Promise.all(Array.from({ length: GRANTS }, () => obtainTokens(emulator)));
  const last = await Promise.all(
    grants.map(async (grant) => {
      let held = grant;
      for (let i = 0; i < 10; i += 1) held = await parseTokens(await refreshTokens(emulator, held.refresh_token));
      return held;
    }),
  );
  expect(new Set(last.map((held) => held.access_token)).size).toBe(GRANTS);
  expect(emulator.grants().every((grant) => grant.generation === 11)).toBe(true);
  expect(emulator.observations).toEqual({
    refreshTokensRepeated: 0,
    codesRepeated: 0,
    overlappingRefreshes: 0,
    fastPolls: 0,
  });
});
