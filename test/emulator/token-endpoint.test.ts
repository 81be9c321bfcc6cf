import { expect, test } from 'vitest';
import {
  errorOf,
  exchange,
  FakeClock,
  FORM,
  HEATER,
  obtainCode,
  obtainTokens,
  PUMP,
  post,
  refresh,
  requestTokens,
  start,
  tokens,
  whoami,
} from './portal-client.ts';

const basic = (id: string, secret: string) => ({
  authorization: `Basic ${Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString('base64')}`,
});

test('a code gives tokens in the shape of the specification', async () => {
  await using emulator = await start();
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

test('the scope asked for is echoed, and kept by refreshes whatever scope they send', async () => {
  await using emulator = await start();
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

test('a code serves once, and its second use revokes what the first one gave', async () => {
  await using emulator = await start();
  const code = await obtainCode(emulator);
  const first = await tokens(await exchange(emulator, code));
  expect((await whoami(emulator, first.access_token)).status).toBe(200);
  expect(await errorOf(await exchange(emulator, code))).toEqual([400, 'invalid_grant']);
  expect((await whoami(emulator, first.access_token)).status).toBe(401);
  expect(await errorOf(await refresh(emulator, first.refresh_token))).toEqual([400, 'invalid_grant']);
  expect(emulator.observations.codesRepeated).toBe(1);
});

test('a code is bound to its client and lives 45 seconds', async () => {
  const clock = new FakeClock();
  await using emulator = await start({ clock });
  const code = await obtainCode(emulator);
  const stolen = await requestTokens(emulator, { grant_type: 'authorization_code', code }, PUMP);
  expect(await errorOf(stolen)).toEqual([400, 'invalid_grant']);
  clock.pass(44.9);
  expect((await exchange(emulator, code)).status).toBe(200);
  const late = await obtainCode(emulator);
  clock.pass(45);
  expect(await errorOf(await exchange(emulator, late))).toEqual([400, 'invalid_grant']);
});

test('the token endpoint takes POST only and forms only', async () => {
  await using emulator = await start();
  const url = `${emulator.frontendUrl}/sso/token`;
  for (const method of ['GET', 'PUT', 'DELETE', 'OPTIONS']) {
    const answer = await fetch(url, { method });
    expect([answer.status, answer.headers.get('allow')], method).toEqual([405, 'POST']);
  }
  const form = { client_id: HEATER.id, client_secret: HEATER.secret, grant_type: 'refresh_token', refresh_token: 'x' };
  for (const type of ['application/json', 'text/plain', 'multipart/form-data']) {
    const body = type === 'application/json' ? JSON.stringify(form) : new URLSearchParams(form).toString();
    expect(await errorOf(await post(url, body, { 'content-type': type })), type).toEqual([400, 'invalid_request']);
  }
  const charset = await post(url, form, { 'content-type': `${FORM}; charset=UTF-8` });
  expect(await errorOf(charset)).toEqual([400, 'invalid_grant']);
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

test('the client is authenticated first, and a refused attempt burns nothing', async () => {
  await using emulator = await start();
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

test('HTTP Basic can be switched off', async () => {
  await using emulator = await start({ basic: 'refuse' });
  const form = { grant_type: 'authorization_code', code: await obtainCode(emulator) };
  const answer = await post(`${emulator.frontendUrl}/sso/token`, form, basic(HEATER.id, HEATER.secret));
  expect(await errorOf(answer)).toEqual([401, 'invalid_client']);
  expect((await requestTokens(emulator, form)).status).toBe(200);
});
