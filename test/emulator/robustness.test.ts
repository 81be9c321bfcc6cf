import { connect } from 'node:net';
import { expect } from 'vitest';
import { IS_LONG_FORM } from '../support/long.ts';
import {
  ALICE,
  exchangeCode,
  FORM,
  HEATER,
  obtainTokens,
  parseTokens,
  post,
  refreshTokens,
  requestConfig,
  stateOf,
  test,
  whoami,
} from './portal-client.ts';

const GRANTS = IS_LONG_FORM ? 200 : 15;

/** Sends bytes and returns what the server sent until it closed the connection. */
function raw(origin: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(origin);
  return new Promise((resolve, reject) => {
    let response = '';
    const socket = connect(Number(port), hostname, () => socket.write(bytes, 'latin1'));
    socket.setEncoding('latin1');
    socket.on('data', (chunk) => {
      response += chunk;
    });
    socket.on('close', () => resolve(response));
    socket.on('error', reject);
  });
}

test('no malformed request gets a 5xx or stops the emulator', async ({ emulator }) => {
  const long = 'x'.repeat(5000);
  const targets = [
    '/%ff',
    '/%',
    '//',
    '/\xff\xfe',
    '*',
    'http://evil.example/sso/authorize',
    '/?%ff=%',
    `/${long}`,
    '/external/oauth2helper/config/%ff',
    '/external/oauth2helper/config/%00?redirect_url=http://%00',
    `/external/oauth2helper/config/${long}`,
    `/external/oauth2helper/config/${HEATER.id}?redirect_url=http://[`,
    `/external/oauth2helper/config/${HEATER.id}?redirect_url=http://xn--a\xff/\u00ff`,
    `/external/oauth2helper/code/get/${HEATER.id}?state=%ff`,
    `/external/oauth2helper/code/get/${HEATER.id}?state=..`,
    `/external/oauth2helper/code/get/__proto__?state=e30.e30.e30`,
    `/external/oauth2helper/code/set/${HEATER.id}?code=%ff&state=%00`,
    `/external/oauth2helper/code/set/${HEATER.id}?error=%ff&error=2`,
    `/sso/authorize?response_type=code&client_id=${HEATER.id}&state=\xff&redirect_uri=${emulator.baseUrl}/external/oauth2helper/code/set/${HEATER.id}`,
    `/sso/authorize?client_id=constructor&state=${long}`,
    '/sso/token?grant_type=refresh_token',
    '/api/whoami',
    '/_emulator/login',
    '/_emulator/requests',
  ];
  const heads = [
    '',
    'Authorization: Basic \xff\r\n',
    'Authorization: Bearer ....\r\n',
    'Content-Type: nonsense\r\n',
    `Content-Type: ${FORM}\r\n`,
    'Content-Type: application/json; charset=x\r\n',
  ];
  const methods = ['GET', 'POST', 'HEAD', 'OPTIONS', 'BREW'];
  // Each target with each method, and with each head in turn.
  const requests = targets.flatMap((target, index) =>
    methods.map((method, other) => ({ method, target, head: heads[(index + other) % heads.length] ?? '' })),
  );
  for (const origin of [emulator.baseUrl, emulator.frontendUrl]) {
    const sent = requests.map(async ({ method, target, head }) => {
      const body = method === 'POST' ? '%ff=%&client_id=\xff&__proto__=1&refresh_token=a.b.c.d' : '';
      const length = method === 'POST' ? `Content-Length: ${body.length}\r\n` : '';
      const bytes = `${method} ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${head}${length}\r\n${body}`;
      const response = await raw(origin, bytes);
      expect(response.slice(0, 12), `${method} ${target.slice(0, 60)} ${head}`).toMatch(/^HTTP\/1\.1 [234]/);
    });
    await Promise.all(sent);
  }
  // The start of an HTTP/2 preface: Node parses it as a request with a method that no router has.
  expect(await raw(emulator.baseUrl, 'PRI *\r\n\r\n')).toMatch(/^HTTP\/1\.1 404 /);
  expect((await whoami(emulator, (await obtainTokens(emulator)).access_token)).status).toBe(200);
});

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
