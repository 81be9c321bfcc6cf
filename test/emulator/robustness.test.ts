import { expect } from 'vitest';
import { ALICE, exchangeCode, post, requestConfig, stateOf, test } from './portal-client.ts';

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
