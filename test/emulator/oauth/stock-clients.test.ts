import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AuthorizationCode } from 'simple-oauth2';
import { beforeAll, expect, test } from 'vitest';
import { buildGoClient, GO_CLIENT, goOauth2, PYTHON_CLIENT, requestsOauthlib } from '../clients/programs.ts';
import { get, HEATER, location, obtainCode, start, whoami } from '../portal-client.ts';

test.for(['header', 'body'] as const)('simple-oauth2, credentials in the %s', async (authorizationMethod) => {
  await using emulator = await start({ autoLogin: true });
  const redirect_uri = `${emulator.baseUrl}/external/oauth2helper/code/set/${HEATER.id}`;
  const client = new AuthorizationCode({
    client: { id: HEATER.id, secret: HEATER.secret },
    auth: { tokenHost: emulator.frontendUrl, tokenPath: '/sso/token', authorizePath: '/sso/authorize' },
    options: { authorizationMethod },
  });
  const landed = new URL(location(await get(client.authorizeURL({ redirect_uri, scope: 'Monitoring', state: 'a b' }))));
  expect(landed.searchParams.get('state')).toBe('a b');
  const first = await client.getToken({
    code: landed.searchParams.get('code') ?? '',
    redirect_uri,
    scope: 'Monitoring',
  });
  const second = await first.refresh({ scope: 'Monitoring' });
  expect(second.token).toMatchObject({ token_type: 'bearer', scope: 'Monitoring', expires_in: 3600 });
  expect(second.token['refresh_token']).not.toBe(first.token['refresh_token']);
  expect((await whoami(emulator, String(second.token['access_token']))).status).toBe(200);
});

test.skipIf(!PYTHON_CLIENT)('requests-oauthlib', async () => {
  await using emulator = await start({ autoLogin: true, clients: [{ ...HEATER, secret: 'plain-secret' }] });
  const answer = await requestsOauthlib(emulator, ['Monitoring', 'RemoteControl']);
  expect(answer).toEqual({ scope: ['Monitoring', 'RemoteControl'], expires_in: 3600, rotated: true, user: 'alice' });
});

test.skipIf(!GO_CLIENT).for(['accept', 'refuse'] as const)(
  'golang.org/x/oauth2, which tries HTTP Basic first: %s',
  async (basic) => {
    await using emulator = await start({ basic });
    const answer = await goOauth2(program, emulator, await obtainCode(emulator));
    expect(answer).toEqual({ token_type: 'bearer', rotated: true, status: 200 });
    const tries = emulator.requests.filter((entry) => entry.endpoint === 'token');
    expect(tries[0]).toMatchObject({ authorization: 'basic', status: basic === 'accept' ? 200 : 401 });
    expect(tries.at(-1)?.status).toBe(200);
    expect(emulator.observations.codesRepeated).toBe(0);
  },
);

let program = '';

beforeAll(async () => {
  if (!GO_CLIENT) return;
  const made = await mkdtempDisposable(join(tmpdir(), 'emulator-clients-'));
  program = await buildGoClient(made.path);
  return async () => {
    await made.remove();
  };
});
