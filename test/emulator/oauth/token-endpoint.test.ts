import { expect } from 'vitest';
import {
  errorOf,
  exchange,
  HEATER,
  obtainCode,
  obtainTokens,
  PUMP,
  post,
  refresh,
  requestTokens,
  start,
  test,
  tokens,
  whoami,
} from '../portal-client.ts';

const basic = (id: string, secret: string) => ({
  authorization: `Basic ${Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString('base64')}`,
});

test('a code gives tokens in the shape of the specification', async ({ emulator }) => {
  const answer = await exchange(emulator, await obtainCode(emulator));
  expect(answer.headers.get('content-type')).toMatch(/^application\/json/);
  expect(answer.headers.get('cache-control')).toBe('no-store');
  expect(await answer.json()).toEqual({
    access_token: expect.any(String),
    expires_in: 3600,
    token_type: 'bearer',
    scope: null,
    refresh_token: expect.any(String),
  });
});

test('an ID token tells who has logged in where that is set, also after a refresh', async () => {
  await using emulator = await start({ idToken: true });
  const first = (await (await exchange(emulator, await obtainCode(emulator))).json()) as Record<string, string>;
  const again = (await (await refresh(emulator, first['refresh_token'] ?? '')).json()) as Record<string, string>;
  const { user } = await (await whoami(emulator, first['access_token'] ?? '')).json();
  for (const { id_token } of [first, again]) {
    const [, claims = '', ...rest] = id_token?.split('.') ?? [];
    expect(JSON.parse(Buffer.from(claims, 'base64url').toString())).toMatchObject({
      sub: user,
      preferred_username: user,
    });
    expect(rest).toHaveLength(1);
  }
});

test('the scope asked for is echoed, and kept by refreshes whatever scope they send', async ({ emulator }) => {
  const first = await obtainTokens(emulator, { scope: 'Monitoring RemoteControl' });
  expect(first.scope).toBe('Monitoring RemoteControl');
  const form = {
    grant_type: 'refresh_token',
    refresh_token: first.refresh_token,
    scope: 'Other',
    access_type: 'offline',
  };
  expect((await tokens(await requestTokens(emulator, form))).scope).toBe('Monitoring RemoteControl');
  const bad = await exchange(emulator, await obtainCode(emulator), { scope: 'two  spaces' });
  expect(await errorOf(bad)).toEqual([400, 'invalid_scope']);
});

test('missing, empty and repeated parameters are invalid requests, unknown grant types unsupported', async () => {
  await using emulator = await start();
  const ask = async (form: Record<string, string>) => errorOf(await requestTokens(emulator, form));
  expect(await ask({})).toEqual([400, 'invalid_request']);
  expect(await ask({ grant_type: 'authorization_code' })).toEqual([400, 'invalid_request']);
  expect(await ask({ grant_type: 'authorization_code', code: '' })).toEqual([400, 'invalid_request']);
  expect(await ask({ grant_type: 'refresh_token' })).toEqual([400, 'invalid_request']);
  expect(await ask({ grant_type: 'client_credentials' })).toEqual([400, 'unsupported_grant_type']);
  const code = await obtainCode(emulator);
  const credentials = new URLSearchParams({ client_id: HEATER.id, client_secret: HEATER.secret });
  const twice = `${credentials}&grant_type=authorization_code&code=${code}&code=${code}`;
  const answer = await post(`${emulator.frontendUrl}/sso/token`, twice);
  expect(answer.headers.get('cache-control')).toBe('no-store');
  expect(await errorOf(answer)).toEqual([400, 'invalid_request']);
  expect((await exchange(emulator, code)).status).toBe(200);
});

test('the client is authenticated first, and a refused attempt burns nothing', async ({ emulator }) => {
  const url = `${emulator.frontendUrl}/sso/token`;
  const code = await obtainCode(emulator);
  const form = { grant_type: 'authorization_code', code };
  const attempts: [Record<string, string>, Record<string, string>][] = [
    [{}, {}],
    [{ client_id: HEATER.id }, {}],
    [{ client_id: HEATER.id, client_secret: 'wrong' }, {}],
    [{ client_id: 'nobody', client_secret: HEATER.secret }, {}],
    [{ client_id: PUMP.id, client_secret: HEATER.secret }, {}],
    [{}, basic(HEATER.id, 'wrong')],
    [{}, { authorization: 'Basic %%%' }],
    [{}, { authorization: `Basic ${Buffer.from('no colon').toString('base64')}` }],
    [{}, { authorization: `Basic ${Buffer.from('%zz:%').toString('base64')}` }],
    [{}, { authorization: 'Bearer x' }],
  ];
  for (const [more, headers] of attempts) {
    const answer = await post(url, { ...form, ...more }, headers);
    const challenged = answer.headers.get('www-authenticate')?.startsWith('Basic ') ?? false;
    expect([...(await errorOf(answer)), challenged]).toEqual([401, 'invalid_client', 'authorization' in headers]);
  }
  const tokensOf = await tokens(await exchange(emulator, code));
  const refused = await post(
    url,
    { grant_type: 'refresh_token', refresh_token: tokensOf.refresh_token },
    basic('x', 'y'),
  );
  expect(refused.status).toBe(401);
  expect((await refresh(emulator, tokensOf.refresh_token)).status).toBe(200);
});

test('HTTP Basic is accepted, its credentials form-decoded, but not together with a secret in the form', async () => {
  await using emulator = await start();
  const url = `${emulator.frontendUrl}/sso/token`;
  const form = { grant_type: 'authorization_code', code: await obtainCode(emulator) };
  const header = basic(HEATER.id, HEATER.secret);
  const both = await post(url, { ...form, client_id: HEATER.id, client_secret: HEATER.secret }, header);
  expect(await errorOf(both)).toEqual([400, 'invalid_request']);
  expect(await errorOf(await post(url, { ...form, client_id: PUMP.id }, header))).toEqual([400, 'invalid_request']);
  expect((await post(url, { ...form, client_id: HEATER.id }, header)).status).toBe(200);
});

test('a code whose exchange was lost is used up, and its second use takes back what the first one gave', async () => {
  await using emulator = await start();
  const code = await obtainCode(emulator);
  emulator.addFault({ endpoint: 'token', grantType: 'authorization_code', kind: 'commit_then_drop' });
  await expect(exchange(emulator, code)).rejects.toThrow();
  const [lost = ''] = emulator.secretsIssued('refresh_token');
  expect(await errorOf(await exchange(emulator, code))).toEqual([400, 'invalid_grant']);
  expect(await errorOf(await refresh(emulator, lost))).toEqual([400, 'invalid_grant']);
});

test('a code whose exchange was reset before it was done is good for another one', async ({ emulator }) => {
  const code = await obtainCode(emulator);
  emulator.addFault({ endpoint: 'token', kind: 'reset_before' });
  await expect(exchange(emulator, code)).rejects.toThrow();
  expect((await exchange(emulator, code)).status).toBe(200);
});
