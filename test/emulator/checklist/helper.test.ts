import { expect } from 'vitest';
import { config, get, HEATER, PUMP, start, stateOf, test } from '../portal-client.ts';

test('Specification, endpoint 1: config takes POST only, and any body', async ({ emulator }) => {
  const url = `${emulator.baseUrl}/external/oauth2helper/config/${HEATER.id}`;
  const wrong = await get(url);
  expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'POST']);
  const answer = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' } });
  expect(answer.status).toBe(200);
});

test('Specification, endpoint 1: each state is unique, signed and bound to its client', async () => {
  await using emulator = await start({ autoLogin: true });
  const [one, two] = [await config(emulator), await config(emulator)];
  expect(stateOf(one.code_url)).not.toBe(stateOf(two.code_url));
  const answer = await get(one.authorize_url.replace(HEATER.id, PUMP.id));
  expect([answer.status, answer.headers.get('location')]).toEqual([400, null]);
});

test('Specification, endpoint 2: the 404 is the same for a client or state that is unknown and for a login that has not happened', async () => {
  await using emulator = await start();
  const { code_url } = await config(emulator);
  const answers = new Set<string>();
  for (const url of [code_url, code_url.replace(HEATER.id, 'nobody'), code_url.replace(/state=.*/, 'state=x')]) {
    const answer = await get(url);
    const headers = [...answer.headers].filter(([name]) => name !== 'date');
    answers.add(JSON.stringify([answer.status, headers, await answer.text()]));
  }
  expect([...answers]).toEqual([expect.stringMatching(/^\[404,/)]);
});
