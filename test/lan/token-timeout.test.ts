import fastify, { type FastifyInstance } from 'fastify';
import { expect, test } from 'vitest';
import type { Appliance } from '../../src/core/appliances/appliance.ts';
import type { LanService, TokenRequest } from '../../src/core/lan-service.ts';
import { Secret } from '../../src/core/secret.ts';
import { DEVICE_CODE_GRANT_TYPE } from '../../src/lan/oauth/request-schemas.ts';
import { serveTokenEndpoint } from '../../src/lan/oauth/token.ts';
import { FORM_MEDIA_TYPE } from '../../src/system/http/form.ts';
import { ClientRateLimiter } from '../../src/system/limits/client-rate-limiter.ts';
import { FakeTime } from '../support/fake-time.ts';
import { logTo } from '../support/log-to.ts';

/** The token endpoint for an appliance. @param authenticating how long client authentication takes, in ms */
function endpoint(service: Partial<LanService>, authenticating: number): FastifyInstance {
  const time = new FakeTime();
  const log = logTo(() => undefined);
  const app = fastify();
  app.addContentTypeParser(FORM_MEDIA_TYPE, { parseAs: 'string' }, (_request, body, done) => done(null, body));
  serveTokenEndpoint(app, service as LanService, {
    async authenticate() {
      time.suspend(authenticating);
      return { kind: 'authenticated', appliance: { name: 'oven', waiting: null } as Appliance };
    },
    page: () => 'https://hub.example',
    service: { recordAuthentication: () => undefined, recordRefusal: () => undefined },
    failureLimiter: new ClientRateLimiter(
      'too_many_failed_authentications',
      { burst: 1, interval: 1 },
      { clock: time, log },
    ),
    clock: time,
  });
  return app;
}

function ask(app: FastifyInstance, form: Record<string, string>) {
  const payload = new URLSearchParams(form).toString();
  return app.inject({ method: 'POST', url: '/oauth/token', headers: { 'content-type': FORM_MEDIA_TYPE }, payload });
}

test('the ten seconds for a token response count from the arrival of the request', async () => {
  const tokenRequests: TokenRequest[] = [];
  await using app = endpoint(
    {
      async issueToken(_appliance, tokenRequest) {
        tokenRequests.push(tokenRequest);
        return { kind: 'unavailable', retryAfter: 3, reason: 'no_answer_yet', unusableTokenReason: 'expired' };
      },
    },
    4000,
  );
  const response = await ask(app, { grant_type: 'client_credentials', min_ttl: '60' });
  expect(response).toMatchObject({ statusCode: 503, headers: { 'retry-after': '3' } });
  expect(tokenRequests).toEqual([{ scope: null, minTtl: 60_000, timeout: 5500 }]);
});

test('a device code request waits once, and does not wait again for a token with a longer lifetime', async () => {
  const tokenRequests: TokenRequest[] = [];
  await using app = endpoint(
    {
      pollDeviceFlow: async () => ({ kind: 'paired', connection: 'oven' }),
      async issueToken(_appliance, tokenRequest) {
        tokenRequests.push(tokenRequest);
        return { kind: 'token', accessToken: new Secret('a-token'), expiresIn: 30, scope: null };
      },
      createSession: async () => new Secret('a-session'),
    },
    0,
  );
  const response = await ask(app, { grant_type: DEVICE_CODE_GRANT_TYPE, device_code: 'a-code', min_ttl: '60' });
  expect(response.json()).toMatchObject({ expires_in: 30, refresh_token: 'a-session' });
  expect(tokenRequests).toEqual([
    { connection: 'oven', scope: null, minTtl: 60_000, timeout: 9500 },
    { connection: 'oven', scope: null, minTtl: 0, timeout: 0 },
  ]);
});
