// Devices with any number of addresses guess everything that opens something at the hub, and register.
import type { FastifyInstance } from 'fastify';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Administration } from '../../../src/core/administration.ts';
import { createHttpApp } from '../../../src/lan/http-app.ts';
import { AssertionReplayCache } from '../../../src/lan/oauth/assertion-replay-cache.ts';
import { serveOAuthEndpoints } from '../../../src/lan/oauth/authorization-server.ts';
import { openPages } from '../../../src/page/pages.ts';
import { systemTimers } from '../../../src/system/clock.ts';
import { FORM_MEDIA_TYPE } from '../../../src/system/http/form.ts';
import { systemRandom } from '../../../src/system/random.ts';
import { BrokerHarness } from '../../broker/broker-harness.ts';
import { lanServiceOf } from '../../broker/broker-services.ts';
import { beginFlow } from '../../broker/logins.ts';
import { HOUR } from '../../core/samples.ts';
import { rememberSecrets } from '../../support/logs.ts';

/** Requests of each kind, at least one from each address. */
const ATTEMPTS = 1000;
/** Requests at a time. */
const BATCH = 200;
const INSTALLER = '192.168.1.20';
const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ';

/** The HTTPS routes of a hub for the broker of the harness, without sockets. */
async function openApp(harness: BrokerHarness): Promise<FastifyInstance> {
  const service = lanServiceOf(harness);
  const {
    run: { access },
    time: clock,
    environment: { log },
  } = harness;
  const pages = openPages({
    service,
    administration: {} as Administration,
    access,
    hubName: 'hub',
    ready: Promise.resolve(),
    timers: systemTimers,
    random: systemRandom,
    clock,
    log,
  });
  const app = createHttpApp(pages, log);
  const usedAssertions = new AssertionReplayCache();
  const page = () => 'https://hub.example';
  serveOAuthEndpoints(app, service, { isOwn: () => true, page, usedAssertions, clock, log });
  pages.registerHttpsRoutes(app);
  await app.ready();
  onTestFinished(() => app.close());
  return app;
}

type Send = (address: string, number: number) => Promise<number>;

/** The statuses of the attempts, by how often each occurred. @param send one attempt; its status */
async function attack(addresses: number, send: Send): Promise<ReadonlyMap<number, number>> {
  const total = Math.max(ATTEMPTS, addresses);
  const statuses = new Map<number, number>();
  for (let first = 0; first < total; first += BATCH) {
    const batch = Array.from({ length: Math.min(BATCH, total - first) }, (_, index) => {
      const address = (first + index) % addresses;
      return send(`10.66.${address >> 8}.${address & 255}`, first + index);
    });
    for (const status of await Promise.all(batch)) statuses.set(status, (statuses.get(status) ?? 0) + 1);
  }
  return statuses;
}

/** A code of this length; a match with a random one is very unlikely. */
function guess(number: number, length: number): string {
  const digits = Array.from({ length }, (_, place) => LETTERS.charAt(Math.floor(number / 20 ** place) % 20));
  return digits.join('');
}

describe.each([1, 100, 10_000])('an attack from %i addresses at once', (addresses) => {
  /** How many attempts the limits allow, if they allow so many to each address. */
  const allowed = (burst: number) => Math.min(Math.max(ATTEMPTS, addresses), burst * addresses);

  it(`guesses of setup codes and user codes from ${addresses} addresses find nothing, and others get in meanwhile`, async () => {
    const { harness } = await BrokerHarness.startUnpaired();
    const app = await openApp(harness);
    const { userCode } = await beginFlow(harness);
    const headers = { 'content-type': FORM_MEDIA_TYPE, 'sec-fetch-site': 'same-origin' };
    const signIn = async (remoteAddress: string, code: string) => {
      const payload = new URLSearchParams({ code }).toString();
      return (await app.inject({ method: 'POST', url: '/sign-in', headers, payload, remoteAddress })).statusCode;
    };
    const openPair = async (remoteAddress: string, code: string) =>
      (await app.inject({ url: `/pair?user_code=${code}`, remoteAddress })).statusCode;

    const signedIn = await attack(addresses, (address, number) => signIn(address, guess(number, 16)));
    const found = await attack(addresses, (address, number) => openPair(address, guess(number, 8)));
    for (const [statuses, wrong] of [
      [signedIn, 401],
      [found, 404],
    ] as const) {
      expect([...statuses.keys()].filter((status) => status !== wrong && status !== 429)).toEqual([]);
      expect(statuses.get(wrong)).toBe(allowed(10));
    }
    expect(await signIn(INSTALLER, harness.run.access.code.reveal())).toBe(303);
    expect(await openPair(INSTALLER, userCode)).toBe(200);
  });

  it(`no appliance that registers from ${addresses} addresses gets in without approval, and an invited one does`, async () => {
    const harness = await BrokerHarness.start({ writeTimes: [0, 0] });
    const app = await openApp(harness);
    harness.run.registrations.setOpenFor(HOUR);
    const credentials: Record<string, string>[] = [];
    const register = async (remoteAddress: string, authorization?: string) => {
      const response = await app.inject({
        method: 'POST',
        url: '/oauth/register',
        headers: { 'content-type': 'application/json', ...(authorization && { authorization }) },
        payload: '{}',
        remoteAddress,
      });
      const { client_id, client_secret } = response.json<Record<string, string>>();
      if (client_id !== undefined && client_secret !== undefined) credentials.push({ client_id, client_secret });
      return response.statusCode;
    };
    const token = async (form: Record<string, string> = {}) => {
      const payload = new URLSearchParams({ grant_type: 'client_credentials', ...form }).toString();
      const headers = { 'content-type': FORM_MEDIA_TYPE };
      const response = await app.inject({ method: 'POST', url: '/oauth/token', headers, payload });
      return response.json<{ error: string }>().error;
    };

    const statuses = await attack(addresses, (address) => register(address));
    expect([...statuses.keys()].sort()).toEqual([201, 429]);
    expect(statuses.get(201)).toBe(Math.min(300, 5 * addresses));
    for (const own of credentials) expect(await token(own)).toBe('unauthorized_client');
    const invitation = { name: 'heater', scope: null, portal: null, connection: null, ttl: 3600 };
    const invite = (await harness.run.registrations.createInvite(invitation)).token.reveal();
    expect(await register('10.66.0.0', `Bearer ${invite}`)).toBe(201);
    // It may request tokens, and its connection has to be paired.
    expect(await token(credentials.at(-1))).toBe('invalid_grant');
    rememberSecrets([invite, ...credentials.map(({ client_secret = '' }) => client_secret)]);
  });
});
