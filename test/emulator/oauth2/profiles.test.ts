import * as oauth from 'oauth4webapi';
import { expect, test } from 'vitest';
import { type EmulatorOptions, OptionError, startEmulator } from '../../../src/emulator/index.ts';
import type { ProfileName } from '../../../src/emulator/profiles/profile-names.ts';
import { PROFILES } from '../../../src/emulator/profiles/profiles.ts';
import { ALICE, get, post, startTestEmulator } from '../portal-client.ts';

const CODE = { grant_type: 'authorization_code' };
const REFRESH = { grant_type: 'refresh_token' };
const REDIRECT_URI = 'https://hub.example/callback';
const OFFLINE = { scope: 'read offline_access' };

/** What a client of this cloud sends. */
interface Conversation {
  readonly authorize: Record<string, string>;
  readonly code?: Record<string, string>;
  readonly refresh?: Record<string, string>;
  readonly authentication: 'post' | 'basic' | 'both' | 'none';
  readonly pkce?: boolean;
}

const CODE_CLOUDS: Readonly<Partial<Record<ProfileName, Conversation>>> = {
  'home-connect': { authorize: { scope: 'IdentifyAppliance Monitor' }, authentication: 'post', pkce: true },
  netatmo: { authorize: { scope: 'read_thermostat' }, authentication: 'post' },
  myuplink: { authorize: { scope: 'READSYSTEM offline_access' }, authentication: 'post' },
  viessmann: { authorize: { scope: 'IoT User offline_access' }, authentication: 'none', pkce: true },
  husqvarna: { authorize: { scope: 'iam:read amc:read' }, authentication: 'post' },
  daikin: { authorize: { scope: 'openid onecta:basic.integration offline_access' }, authentication: 'basic' },
  miele: { authorize: { scope: 'openid mcs_thirdparty_read' }, authentication: 'post' },
  tibber: { authorize: OFFLINE, authentication: 'post', pkce: true },
  withings: {
    authorize: { scope: 'user.info,user.metrics' },
    code: { action: 'requesttoken' },
    refresh: { action: 'requesttoken' },
    authentication: 'post',
  },
  nest: {
    authorize: { scope: 'https://www.googleapis.com/auth/sdm.service', access_type: 'offline', prompt: 'consent' },
    authentication: 'post',
  },
  tesla: { authorize: OFFLINE, code: { audience: 'https://fleet.example' }, authentication: 'post' },
  resideo: { authorize: { appSelect: '1' }, authentication: 'basic' },
  smartthings: { authorize: { scope: 'r:devices:*' }, authentication: 'basic' },
  hue: { authorize: {}, authentication: 'basic' },
  enphase: { authorize: {}, authentication: 'basic' },
  microsoft: { authorize: OFFLINE, authentication: 'none', pkce: true },
  volvo: { authorize: { scope: 'openid conve:vehicle_relation' }, authentication: 'basic', pkce: true },
};

const VERIFIER = 'v'.repeat(43);

async function startProfile(profile: ProfileName, options: EmulatorOptions = {}) {
  const emulator = await startEmulator({ profile, users: [ALICE], ...options });
  const { clientId, clientSecret } = emulator;
  const headers = (authentication: Conversation['authentication']): Record<string, string> => {
    const pair = `${encodeURIComponent(clientId)}:${encodeURIComponent(clientSecret)}`;
    const isBasic = authentication === 'basic' || authentication === 'both';
    return isBasic ? { authorization: `Basic ${Buffer.from(pair).toString('base64')}` } : {};
  };
  const form = (authentication: Conversation['authentication']): Record<string, string> => ({
    client_id: clientId,
    ...((authentication === 'post' || authentication === 'both') && { client_secret: clientSecret }),
  });
  const token = async (authentication: Conversation['authentication'], members: Record<string, string>) => {
    const own = { ...form(authentication), ...members };
    const response = await post(`${emulator.frontendUrl}/oauth2/token`, own, headers(authentication));
    const answer = (await response.json()) as Record<string, unknown>;
    const isEnveloped = answer['status'] === 0;
    return { status: response.status, body: (isEnveloped ? answer['body'] : answer) as Record<string, unknown> };
  };
  const logIn = async ({ authorize, pkce }: Conversation) => {
    const challenge = {
      code_challenge: await oauth.calculatePKCECodeChallenge(VERIFIER),
      code_challenge_method: 'S256',
    };
    const query = new URLSearchParams({
      response_type: 'code',
      client_id: clientId,
      redirect_uri: REDIRECT_URI,
      state: 's',
      ...authorize,
      ...(pkce === true && challenge),
    });
    const page = await post(`${emulator.frontendUrl}/oauth2/authorize?${query}`, {
      username: ALICE.name,
      password: ALICE.password,
    });
    const landed = new URL(page.headers.get('location') ?? 'https://nowhere.example');
    return {
      code: landed.searchParams.get('code') ?? '',
      error: landed.searchParams.get('error'),
      redirect_uri: REDIRECT_URI,
      ...(pkce === true && { code_verifier: VERIFIER }),
    };
  };
  return { emulator, token, logIn, [Symbol.asyncDispose]: () => emulator.close() };
}

const cases = Object.entries(CODE_CLOUDS).map(([name, conversation]) => [name as ProfileName, conversation] as const);

test.for(cases)('%s: a client that knows the cloud logs in with a code and refreshes', async ([name, conversation]) => {
  await using cloud = await startProfile(name);
  const { error, ...login } = await cloud.logIn(conversation);
  expect(error).toBe(null);
  const first = await cloud.token(conversation.authentication, { ...CODE, ...login, ...conversation.code });
  expect([first.status, first.body]).toMatchObject([200, { refresh_token: expect.any(String) }]);
  const refresh_token = String(first.body['refresh_token']);
  const second = await cloud.token(conversation.authentication, { ...REFRESH, refresh_token, ...conversation.refresh });
  expect([second.status, second.body]).toMatchObject([200, { access_token: expect.any(String) }]);
});

/** What each cloud refuses of a client that does not know it. */
const WRONG: readonly (readonly [ProfileName, Partial<Conversation>])[] = [
  ['netatmo', { authentication: 'basic' }],
  ['myuplink', { authentication: 'basic' }],
  ['husqvarna', { authentication: 'basic' }],
  ['tibber', { authentication: 'basic' }],
  ['viessmann', { pkce: false }],
  ['daikin', { authorize: { scope: 'offline_access' } }],
  ['miele', { authorize: { scope: 'mcs_thirdparty_read' } }],
  ['withings', { code: {} }],
  ['nest', { authorize: { scope: 'openid' } }],
  ['tesla', { code: {} }],
  ['resideo', { authentication: 'post' }],
  ['resideo', { authorize: {} }],
  ['smartthings', { authentication: 'post' }],
  ['hue', { authentication: 'both' }],
  ['enphase', { authentication: 'post' }],
  ['microsoft', { authorize: {} }],
  ['volvo', { pkce: false }],
];

test.for(WRONG)('%s refuses a client with %j', async ([name, wrong]) => {
  await using cloud = await startProfile(name);
  const right = CODE_CLOUDS[name];
  if (right === undefined) throw new Error(`no conversation for ${name}`);
  const conversation = { ...right, ...wrong };
  const { error, ...login } = await cloud.logIn(conversation);
  const { body } = await cloud.token(conversation.authentication, { ...CODE, ...login, ...conversation.code });
  expect([error ?? body['error'], body['access_token']]).toEqual([expect.any(String), undefined]);
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
  for (const profile of Object.keys(PROFILES) as ProfileName[]) {
    await using emulator = await startEmulator({ profile });
    expect(emulator.settings).toMatchObject(PROFILES[profile].settings);
  }
});
