import * as oauth from 'oauth4webapi';
import { expect, test } from 'vitest';
import { CLOUD_NAMES } from '../../../src/clouds/catalogue.ts';
import { OptionError, startEmulator } from '../../../src/emulator/index.ts';
import { findProfile } from '../../../src/emulator/settings/profiles.ts';
import { get, redirectLocation, startTestEmulator } from '../portal-client.ts';
import { StockClient, startCloud, TOOL } from './stock-client.ts';

const REDIRECT_URI = 'https://hub.example/callback';

// That a client that knows the cloud logs in and refreshes: presets-matrix.test.ts, with a hub.
test('a profile refuses another client authentication, a login without its parameters, and one without PKCE', async () => {
  const start = (profile: string) => startCloud({ profile, clients: [TOOL] });
  await using netatmo = await start('netatmo');
  const basic = await StockClient.discover(netatmo, oauth.ClientSecretBasic(TOOL.secret));
  await expect(basic.refresh('x')).rejects.toMatchObject({ status: 401 });
  for (const [profile, error] of [
    ['resideo', 'invalid_request'],
    ['viessmann', 'invalid_request'],
    ['miele', 'invalid_scope'],
  ] as const) {
    await using cloud = await start(profile);
    const stock = await StockClient.discover(cloud);
    const landed = redirectLocation(await get(stock.authorizationUrl({ scope: 'offline_access' })));
    expect(new URL(landed).searchParams.get('error'), profile).toBe(error);
  }
});

test('options beside a profile win, a reset restores the profile, and an undefined option does not count', async () => {
  const clients = [{ id: 'own', redirectUris: [REDIRECT_URI] }];
  const options = { profile: 'viessmann', pkce: 'optional', tokenLifetime: undefined, clients } as const;
  await using emulator = await startTestEmulator(options);
  expect([emulator.clientId, emulator.settings.pkce, emulator.settings.refreshTokenIssue]).toEqual([
    'own',
    'optional',
    'offline',
  ]);
  emulator.change({ refreshTokenIssue: 'always' });
  await emulator.reset();
  expect(emulator.settings).toMatchObject({ pkce: 'optional', refreshTokenIssue: 'offline', tokenLifetime: 3600 });
  const wrong = { response_type: 'code', client_id: 'own', redirect_uri: 'https://other.example/' };
  expect((await get(`${emulator.frontendUrl}/oauth2/authorize?${new URLSearchParams(wrong)}`)).status).toBe(400);
});

test('an unknown profile is refused, with the nearest name', async () => {
  const started = startEmulator({ profile: 'netatmoo' } as object);
  await expect(started).rejects.toThrow(OptionError);
  await expect(startEmulator({ profile: 'netatmoo' } as object)).rejects.toThrow(/^profile: .*did you mean netatmo/);
});

test('each profile starts, and its settings can be read', async () => {
  for (const profile of CLOUD_NAMES) {
    await using emulator = await startEmulator({ profile });
    const said = Object.entries(findProfile(profile)?.settings ?? {}).filter(([, value]) => value !== undefined);
    expect(emulator.settings).toMatchObject(Object.fromEntries(said));
  }
});
