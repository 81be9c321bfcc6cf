import fastify from 'fastify';
import { expect, test } from 'vitest';
import type { Appliance } from '../../src/core/appliances/appliance.ts';
import type { LanService, TokenRequest } from '../../src/core/lan-service.ts';
import { Secret } from '../../src/core/secret.ts';
import { DEVICE_CODE_GRANT } from '../../src/lan/oauth/schemas.ts';
import { serveToken } from '../../src/lan/oauth/token.ts';
import { FORM } from '../../src/system/http/form.ts';
import { ClientRateLimiter } from '../../src/system/limits/client-rate-limiter.ts';
import { FakeTime } from '../support/fake-time.ts';

test('the ten seconds in which an appliance is answered count from when its request came', async () => {
  const appliance = { name: 'oven', waitingSince: null } as Appliance;
  const wishes: TokenRequest[] = [];
  const service = {
    async issueToken(_appliance, wish) {
      wishes.push(wish);
      return { kind: 'unavailable', retryAfter: 3, why: 'no_answer_yet', atHand: 'run_out' };
    },
  } as Partial<LanService> as LanService;
  const time = new FakeTime();
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const app = fastify();
  app.addContentTypeParser(FORM, { parseAs: 'string' }, (_request, body, done) => done(null, body));
  serveToken(app, service, {
    async authenticate() {
      time.suspend(4000);
      return { kind: 'authenticated', appliance };
    },
    heard: () => undefined,
    failures: new ClientRateLimiter('too many', { burst: 1, interval: 1 }, { clock: time, log }),
    clock: time,
  });
  const answer = await app.inject({
    method: 'POST',
    url: '/oauth/token',
    headers: { 'content-type': FORM },
    payload: 'grant_type=client_credentials&min_ttl=60',
  });
  expect(answer).toMatchObject({ statusCode: 503, headers: { 'retry-after': '3' } });
  expect(wishes).toEqual([{ scope: null, minTtl: 60_000, timeout: 5500 }]);
  await app.close();
});

test('a device code that is redeemed is waited for once, and not again for what is left of the token', async () => {
  const appliance = { name: 'oven', waitingSince: null } as Appliance;
  const wishes: TokenRequest[] = [];
  const time = new FakeTime();
  const service = {
    async pollDeviceFlow() {
      return { kind: 'paired' };
    },
    async issueToken(_appliance, wish) {
      wishes.push(wish);
      return { kind: 'token', accessToken: new Secret('a-token'), expiresIn: 30, scope: null };
    },
    async openSession() {
      return new Secret('a-session');
    },
  } as Partial<LanService> as LanService;
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const app = fastify();
  app.addContentTypeParser(FORM, { parseAs: 'string' }, (_request, body, done) => done(null, body));
  serveToken(app, service, {
    authenticate: async () => ({ kind: 'authenticated', appliance }),
    heard: () => undefined,
    failures: new ClientRateLimiter('too many', { burst: 1, interval: 1 }, { clock: time, log }),
    clock: time,
  });
  const answer = await app.inject({
    method: 'POST',
    url: '/oauth/token',
    headers: { 'content-type': FORM },
    payload: new URLSearchParams({ grant_type: DEVICE_CODE_GRANT, device_code: 'a-code', min_ttl: '60' }).toString(),
  });
  expect(answer.json()).toMatchObject({ expires_in: 30, refresh_token: 'a-session' });
  expect(wishes).toEqual([
    { scope: null, minTtl: 60_000, timeout: 9500 },
    { scope: null, minTtl: 0, timeout: 0 },
  ]);
  await app.close();
});
