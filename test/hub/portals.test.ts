import { expect, test } from 'vitest';
import { withResponseListeners } from '../../src/broker/portal-availability.ts';
import { emulatorCloudConfiguration } from '../../src/cli/test-mode.ts';
import type { HelperPortalConfiguration, PortalConfiguration } from '../../src/configuration/portals.ts';
import { Secret } from '../../src/core/secret.ts';
import { connectPortals } from '../../src/hub/portals/connect-portals.ts';
import { systemClock, systemTimers } from '../../src/system/clock.ts';
import { systemRandom } from '../../src/system/random.ts';
import { memorySettings } from '../support/hub-authority.ts';
import { logTo } from '../support/log-to.ts';
import { httpResponse, startRawServer } from '../support/raw-server.ts';

const CONFIGURATION: Omit<HelperPortalConfiguration, 'name' | 'baseUrl' | 'frontendUrl' | 'revocationEndpoint'> = {
  type: 'helper',
  clientId: '6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1a01',
  clientSecret: new Secret('the-client-secret'),
  ca: [],
  proxy: null,
  redirect: 'off',
  tokenLifetime: 600_000,
  policy: {
    retryLostAnswer: 'late',
    loginLifetime: 604_800_000,
    idleLifetime: 86_400_000,
    refreshEndsAccessToken: true,
  },
};

const TOKENS = { refreshToken: new Secret('the-refresh-token'), accessToken: new Secret('the-access-token') };

test('a connected portal has the lifetimes of its configuration, and revokes at the endpoint of its configuration', async () => {
  await using server = await startRawServer((socket) =>
    socket.end(httpResponse(200, '{"access_token":"a","expires_in":0}')),
  );
  const origins = { baseUrl: server.origin, frontendUrl: server.origin };
  const configured = { name: 'home', ...CONFIGURATION, ...origins, revocationEndpoint: `${server.origin}/revoke` };
  const without = { name: 'other', ...CONFIGURATION, ...origins, revocationEndpoint: null };
  await using portals = await connectPortals([configured, without], {
    address: () => null,
    httpPort: 8480,
    clock: systemClock(),
    timers: systemTimers,
    random: systemRandom,
    log: logTo(() => undefined),
    store: { settings: memorySettings(new Map()) },
  });
  const available: string[] = [];
  const observed = withResponseListeners(portals, {
    onAvailable: (name) => available.push(name),
    onTime: () => undefined,
  });
  expect(observed.get('home')).toMatchObject(CONFIGURATION.policy);
  const refreshed = await observed.get('home')?.portal.refresh(TOKENS.refreshToken);
  expect(refreshed).toMatchObject({ kind: 'granted', tokens: { lifetime: 600_000 } });
  expect(await observed.get('home')?.portal.revoke(TOKENS)).toEqual({ kind: 'revoked' });
  expect(await observed.get('other')?.portal.revoke(TOKENS)).toEqual({ kind: 'unsupported' });
  expect(server.requests.map(({ method, target }) => `${method} ${target}`)).toEqual([
    'POST /sso/token',
    'POST /revoke',
  ]);
});

test('each portal that has moved its token endpoint is reported with both addresses, and by its check', async () => {
  await using server = await startRawServer((socket) =>
    socket.end(httpResponse(200, documentAt('https://new.example'))),
  );
  function documentAt(origin: string): string {
    const endpoints = { authorization_endpoint: `${server.origin}/authorize`, token_endpoint: `${origin}/token` };
    return JSON.stringify({ issuer: server.origin, response_types_supported: ['code'], ...endpoints });
  }
  const client = { name: 'cloud', clientId: 'latchkey', clientSecret: CONFIGURATION.clientSecret.reveal() };
  const cloud = emulatorCloudConfiguration({ frontendUrl: server.origin }, client);
  const settings = { ...cloud.settings, login: 'redirect' } as const;
  const configured: PortalConfiguration = { ...cloud, policy: CONFIGURATION.policy, settings };
  const second = { ...configured, name: 'second' };
  const saved = new Map(['cloud', 'second'].map((name) => [`metadata of ${name}`, documentAt(server.origin)]));
  await using portals = await connectPortals([configured, second], {
    address: () => null,
    httpPort: 8480,
    clock: systemClock(),
    timers: systemTimers,
    random: systemRandom,
    log: logTo(() => undefined),
    store: { settings: memorySettings(saved) },
  });
  const message = expect.stringMatching(
    /has moved its token_endpoint from http:\/\/127.0.0.1:\d+ to https:\/\/new.example.*set portals.cloud.token_endpoint = "https:\/\/new.example\/token"/,
  );
  expect(await portals.inspect('cloud')?.check(Date.now)).toMatchObject([
    { name: 'discovery', result: 'fail', detail: message },
    ...['endpoints', 'tls', 'clock', 'client', 'logins'].map((name) => ({ name })),
  ]);
  expect(portals.moved).toEqual(message);
  await portals.inspect('second')?.check(Date.now);
  expect(portals.moved).toMatch(/portals\.cloud\.token_endpoint = .*; .*portals\.second\.token_endpoint = /);
  expect([...saved.values()]).toEqual(Array(2).fill(documentAt(server.origin)));
});
