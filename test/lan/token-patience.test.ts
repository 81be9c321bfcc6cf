import fastify from 'fastify';
import { expect, test } from 'vitest';
import type { Appliance } from '../../src/core/appliance.ts';
import type { LanService, TokenWish } from '../../src/core/lan-service.ts';
import { AddressLimit } from '../../src/lan/limits.ts';
import { FORM } from '../../src/lan/oauth/form-endpoint.ts';
import { serveToken } from '../../src/lan/oauth/token.ts';
import { FakeTime } from '../support/fake-time.ts';

test('the ten seconds in which an appliance is answered count from when its request came', async () => {
  const appliance = { name: 'oven', waitingSince: null } as Appliance;
  const wishes: TokenWish[] = [];
  const service = {
    async handOut(_appliance, wish) {
      wishes.push(wish);
      return { kind: 'unavailable', retryAfter: 3, why: 'no_answer_yet' };
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
    failures: new AddressLimit('too many', { most: 1, every: 1 }, { clock: time, log }),
    clock: time,
  });
  const answer = await app.inject({
    method: 'POST',
    url: '/oauth/token',
    headers: { 'content-type': FORM },
    payload: 'grant_type=client_credentials&min_ttl=60',
  });
  expect(answer).toMatchObject({ statusCode: 503, headers: { 'retry-after': '3' } });
  expect(wishes).toEqual([{ scope: null, atLeast: 60_000, patience: 5500 }]);
  await app.close();
});
