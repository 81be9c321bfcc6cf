import fastify, { type FastifyInstance } from 'fastify';
import { expect, test } from 'vitest';
import type { Appliance } from '../../src/core/appliances/appliance.ts';
import { type LanService, MAX_RESPONSE_TIME } from '../../src/core/lan-service.ts';
import { Secret } from '../../src/core/secret.ts';
import { DEVICE_CODE_GRANT_TYPE } from '../../src/lan/oauth/request-schemas.ts';
import { serveTokenEndpoint } from '../../src/lan/oauth/token.ts';
import { FORM_MEDIA_TYPE } from '../../src/system/http/form.ts';
import { ClientRateLimiter } from '../../src/system/limits/client-rate-limiter.ts';
import { FakeTime } from '../support/fake-time.ts';
import { logTo } from '../support/log-to.ts';

/** The token endpoint for an appliance. @param deadlines where the deadline of client authentication is recorded */
function endpoint(service: Partial<LanService>, time: FakeTime, deadlines: (number | undefined)[]): FastifyInstance {
  const log = logTo(() => undefined);
  const app = fastify();
  app.addContentTypeParser(FORM_MEDIA_TYPE, { parseAs: 'string' }, (_request, body, done) => done(null, body));
  serveTokenEndpoint(app, {
    async authenticate(_request, _form, deadline) {
      deadlines.push(deadline);
      time.suspend(4000);
      return { kind: 'authenticated', appliance: { name: 'oven', waiting: null } as Appliance };
    },
    page: () => 'https://hub.example',
    service: { recordAuthentication: () => undefined, ...service } as LanService,
    failureLimiter: new ClientRateLimiter(
      'too_many_failed_authentications',
      { burst: 1, interval: 1 },
      { clock: time, log },
    ),
    clock: time,
  });
  return app;
}

test.each<[form: Record<string, string>, waits: number]>([
  [{ grant_type: 'client_credentials' }, 2],
  [{ grant_type: 'refresh_token', refresh_token: 'a-session' }, 3],
  [{ grant_type: DEVICE_CODE_GRANT_TYPE, device_code: 'a-code' }, 5],
])('all waits for one token response end 9.5 s after the request arrived: %o', async (form, waits) => {
  const time = new FakeTime();
  const deadlines: (number | undefined)[] = [];
  let isKnown = false;
  await using app = endpoint(
    {
      findSession: () => (isKnown ? {} : undefined),
      async lookForNews(deadline) {
        deadlines.push(deadline);
        isKnown = true;
        return true;
      },
      async pollDeviceFlow(_appliance, _deviceCode, deadline) {
        deadlines.push(deadline);
        return { kind: 'paired', connection: 'oven' };
      },
      async issueToken(_appliance, { deadline }) {
        deadlines.push(deadline);
        time.suspend(1000);
        return { kind: 'token', accessToken: new Secret('a-token'), expiresIn: 30, scope: null };
      },
      async createSession(_appliance, _deviceCode, _connection, deadline) {
        deadlines.push(deadline);
        return new Secret('a-session');
      },
    },
    time,
    deadlines,
  );
  const deadline = time.uptime + MAX_RESPONSE_TIME;
  const payload = new URLSearchParams(form).toString();
  const headers = { 'content-type': FORM_MEDIA_TYPE };
  const response = await app.inject({ method: 'POST', url: '/oauth/token', headers, payload });
  expect(response.json()).toMatchObject({ access_token: 'a-token', expires_in: 30 });
  expect(deadlines).toEqual(Array(waits).fill(deadline));
});
