// Credentials that another hub of the site has issued a moment ago, at the token endpoint of a real server.
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { request } from 'undici';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { LanService } from '../../src/core/lan-service.ts';
import { sha256 } from '../../src/system/secret-hash.ts';
import { LanServerHarness } from '../support/lan-server-harness.ts';

const TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
let side: LanServerHarness;
let looks: number;

beforeAll(async () => {
  side = await LanServerHarness.start();
});

afterAll(() => side[Symbol.asyncDispose]());

beforeEach(() => {
  looks = 0;
  side.home.isOnSite = true;
  side.home.whenLooking = () => {
    looks += 1;
  };
  // Earlier failures no longer count.
  side.home.uptime += 3_600_000;
});

/** The status of a token request. */
async function ask(form: Record<string, string>): Promise<number> {
  const response = await request(`https://127.0.0.1:${side.server.httpsPort}/oauth/token`, {
    method: 'POST',
    dispatcher: side.agent,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ grant_type: 'client_credentials', ...form }).toString(),
  });
  await response.body.dump();
  return response.statusCode;
}

test('a secret that another hub has issued or replaced is accepted after one look, and the former one refused', async () => {
  const form = { client_id: 'fridge', client_secret: 'a secret of the fridge' };
  expect([await ask(form), looks]).toEqual([401, 1]);
  for (const client_secret of [form.client_secret, 'the new secret']) {
    side.home.whenLooking = () => side.home.add('fridge', { kind: 'secret', hash: sha256(client_secret) });
    expect(await ask({ ...form, client_secret })).toBe(200);
  }
  expect(await ask(form)).toBe(401);
});

test('an appliance that another hub has added is accepted by its signed assertion', async () => {
  const { publicKey, privateKey } = await generateKeyPair('ES256');
  const keys = [{ ...(await exportJWK(publicKey)) }];
  side.home.whenLooking = () => side.home.add('boiler', { kind: 'keys', keys });
  const now = (side.home.now ?? 0) / 1000;
  const claims = { iss: 'boiler', sub: 'boiler', aud: `https://127.0.0.1:${side.server.httpsPort}`, jti: 'one' };
  const assertion = await new SignJWT({ ...claims, iat: now, exp: now + 60 })
    .setProtectedHeader({ alg: 'ES256' })
    .sign(privateKey);
  const form = { client_assertion_type: TYPE, client_assertion: assertion };
  expect([await ask(form), await ask(form)]).toEqual([200, 401]);
});

test("a hub's own refresh token that another hub has issued is accepted after one look", async () => {
  const service = side.home.service as { -readonly [Name in keyof LanService]: LanService[Name] };
  side.home.add('meter', { kind: 'secret', hash: sha256('a secret of the meter') });
  const known = new Set<string>();
  service.findSession = (_appliance, token) => (known.has(token) ? {} : undefined);
  const form = { client_id: 'meter', client_secret: 'a secret of the meter', grant_type: 'refresh_token' };
  expect([await ask({ ...form, refresh_token: 'a token' }), looks]).toEqual([400, 1]);
  side.home.whenLooking = () => void known.add('a token');
  expect(await ask({ ...form, refresh_token: 'a token' })).toBe(200);
});

test('a hub that is alone refuses unknown credentials at once', async () => {
  side.home.isOnSite = false;
  side.home.whenLooking = () => side.home.add('lamp', { kind: 'secret', hash: sha256('a secret of the lamp') });
  expect(await ask({ client_id: 'lamp', client_secret: 'a secret of the lamp' })).toBe(401);
});
