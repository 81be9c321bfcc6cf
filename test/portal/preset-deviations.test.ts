// What each preset changes about a portal with the hub's defaults: one row for each deviation, which shows its effect. The
// presets as a whole, at the doubles of their clouds: presets-matrix.test.ts.

import * as v from 'valibot';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { portalSchema } from '../../src/configuration/portal-schema.ts';
import { readPortals } from '../../src/configuration/portals.ts';
import type { RedirectLink } from '../../src/core/portals/login-link.ts';
import { Secret } from '../../src/core/secret.ts';
import type { OAuth2Portal } from '../../src/portal/oauth2/oauth2-portal.ts';
import { type PortalOperation, readTokenEndpointResponse } from '../../src/portal/oauth2/responses.ts';
import { findPreset, presets } from '../../src/portal/presets/catalogue.ts';
import type { Preset } from '../../src/portal/presets/preset.ts';
import { resolvePreset } from '../../src/portal/presets/resolve.ts';
import { httpResponse, type RawServer, startRawServer } from '../support/raw-server.ts';
import { connectOAuth2Portal } from './oauth2/oauth2-portal-harness.ts';

const [ID, SECRET] = ['the-client', 'the-secret'];
const TOKENS = { access_token: 'aaa', refresh_token: 'rrr', token_type: 'bearer' };
const DAY = 86_400_000;

/** What shows a deviation, and what it is like then. */
type Effect =
  /** The parameters of the link that a person opens. */
  | { readonly link: object }
  /** A request with its `form`, `query` and `authorization`. */
  | { readonly sends: PortalOperation; readonly like: object }
  /** How the hub reads a response with this body; to a refresh with status 200, unless something else is said. */
  | { readonly reads: object; readonly to?: PortalOperation; readonly status?: number; readonly like: object }
  /** The configuration of the portal. */
  | { readonly configures: object };

const has = (members: object) => expect.objectContaining(members);
const lacks = (member: string) => expect.not.objectContaining({ [member]: expect.anything() });

const LATE: Effect = { configures: { retryLostAnswer: 'late' } };
const ENDS_TOKENS: Effect = { configures: { refreshEndsAccessToken: true } };
const NO_PKCE: Effect = { link: lacks('code_challenge') };
const POST: Effect = { sends: 'code', like: { form: has({ client_id: ID, client_secret: SECRET }) } };
const form = (sends: PortalOperation, members: object): Effect => ({ sends, like: { form: has(members) } });
const query = (sends: PortalOperation, members: object): Effect => ({ sends, like: { form: {}, query: has(members) } });
const link = (parameters: object): Effect => ({ link: has(parameters) });
const account = (member: string): Effect => ({
  ...{ reads: { ...TOKENS, [member]: 'anna' }, like: { tokens: { account: 'anna' } } },
});
const scope = (defaultScope: string): Effect => ({ configures: { settings: { defaultScope } } });
const idle = (days: number): Effect => ({ configures: { idleLifetime: days * DAY } });
const lifetime = (ms: number, reads: object = TOKENS): Effect => ({ reads, like: { tokens: { lifetime: ms } } });

const errorCode = (error: string, meaning: string, to: PortalOperation = 'refresh'): Effect => ({
  ...{ reads: { error }, to, status: 401, like: { meaning } },
});

const EFFECTS: Readonly<Record<string, Readonly<Record<string, Effect>>>> = {
  bmw: {
    scope: scope('authenticate_user openid cardata:api:read cardata:streaming:read'),
    'settings.retry_lost_answer': LATE,
    'protocol.device_pkce': form('device_token', { code_verifier: expect.any(String) }),
    'protocol.operations.device_authorization.params.response_type': form('device_authorization', {
      response_type: 'device_code',
    }),
    'protocol.response.members.account': account('gcid'),
    'protocol.errors.0': { reads: {}, to: 'device_token', status: 500, like: { meaning: 'deferred' } },
  },
  daikin: {
    scope: scope('openid onecta:basic.integration offline_access'),
    'settings.client_auth': POST,
    'settings.pkce': NO_PKCE,
    'settings.retry_lost_answer': LATE,
  },
  enphase: {
    'settings.pkce': NO_PKCE,
    'settings.token_lifetime': lifetime(DAY),
    'settings.idle_lifetime': idle(30),
    'settings.retry_lost_answer': LATE,
    'protocol.operations.code.placement': query('code', { code: 'the-code' }),
    'protocol.operations.refresh.placement': query('refresh', { refresh_token: 'the-refresh-token' }),
  },
  'home-connect': {
    scope: scope('IdentifyAppliance Monitor Settings Control'),
    'settings.client_auth': POST,
    'settings.token_lifetime': lifetime(DAY),
    'settings.idle_lifetime': idle(60),
    'settings.min_request_interval': { configures: { settings: { minRequestInterval: 6000 } } },
    'settings.retry_lost_answer': LATE,
    'protocol.operations.refresh.client_id': { sends: 'refresh', like: { form: lacks('client_id') } },
    'protocol.operations.device_token.grant_type': form('device_token', { grant_type: 'device_code' }),
  },
  hue: {
    'settings.pkce': NO_PKCE,
    'settings.token_lifetime': lifetime(7 * DAY),
    'settings.retry_lost_answer': LATE,
  },
  husqvarna: {
    'settings.client_auth': POST,
    'settings.pkce': NO_PKCE,
    'settings.token_lifetime': lifetime(DAY),
    'settings.retry_lost_answer': LATE,
    'protocol.operations.revoke.client_auth': { sends: 'revoke', like: { authorization: 'Bearer the-access-token' } },
    'protocol.operations.revoke.token': form('revoke', { token: 'the-access-token' }),
    'protocol.response.members.account': account('user_id'),
  },
  microsoft: {
    scope: scope('openid offline_access'),
    'settings.client_auth': POST,
    'settings.idle_lifetime': idle(90),
    'settings.error_codes.authorization_declined': errorCode('authorization_declined', 'denied', 'device_token'),
    'settings.error_codes.consent_required': errorCode('consent_required', 'refused'),
    'settings.error_codes.interaction_required': errorCode('interaction_required', 'refused'),
    'settings.error_codes.login_required': errorCode('login_required', 'refused'),
  },
  miele: {
    scope: scope('openid mcs_thirdparty_read mcs_thirdparty_write'),
    'settings.client_auth': POST,
    'settings.pkce': NO_PKCE,
    'settings.retry_lost_answer': LATE,
  },
  myuplink: {
    scope: scope('READSYSTEM WRITESYSTEM offline_access'),
    'settings.client_auth': POST,
    'settings.pkce': NO_PKCE,
    'settings.retry_lost_answer': LATE,
  },
  nest: {
    scope: scope('https://www.googleapis.com/auth/sdm.service'),
    'settings.client_auth': POST,
    'settings.pkce': NO_PKCE,
    'settings.authorization_params.access_type': link({ access_type: 'offline' }),
    'settings.authorization_params.prompt': link({ prompt: 'consent' }),
    'settings.idle_lifetime': idle(180),
  },
  netatmo: {
    scope: scope('read_station read_thermostat write_thermostat'),
    'settings.client_auth': POST,
    'settings.pkce': NO_PKCE,
    'settings.token_lifetime': lifetime(DAY / 8),
    'settings.refresh_ends_access_token': ENDS_TOKENS,
    'settings.retry_lost_answer': LATE,
  },
  resideo: {
    'settings.pkce': NO_PKCE,
    'settings.authorization_params.appSelect': link({ appSelect: '1' }),
    'settings.token_lifetime': lifetime(DAY / 48),
    'settings.retry_lost_answer': LATE,
  },
  smartthings: {
    scope: scope('r:devices:* x:devices:* r:locations:*'),
    'settings.pkce': NO_PKCE,
    'settings.token_lifetime': lifetime(DAY),
    'settings.idle_lifetime': idle(30),
    'settings.refresh_ends_access_token': ENDS_TOKENS,
    'settings.retry_lost_answer': LATE,
    'protocol.operations.code.client_id': form('code', { client_id: ID }),
    'protocol.operations.refresh.client_id': form('refresh', { client_id: ID }),
  },
  tado: {
    scope: scope('offline_access'),
    'settings.client_id': form('refresh', { client_id: '1bb50063-6b0c-4d11-bd99-387f4a91cc46' }),
    'settings.token_lifetime': lifetime(DAY / 144),
    'settings.idle_lifetime': idle(30),
    'settings.retry_lost_answer': LATE,
  },
  tesla: {
    scope: scope('openid offline_access vehicle_device_data energy_device_data'),
    'settings.client_auth': POST,
    'settings.pkce': NO_PKCE,
    'settings.authorization_params.prompt': link({ prompt: 'login' }),
    'settings.error_codes.login_required': errorCode('login_required', 'refused'),
    'settings.authorization_params.prompt_missing_scopes': link({ prompt_missing_scopes: 'true' }),
    'settings.idle_lifetime': idle(90),
    'settings.retry_lost_answer': LATE,
    'protocol.operations.code.params.audience': form('code', {
      audience: 'https://fleet-api.prd.eu.vn.cloud.tesla.com',
    }),
    'protocol.operations.refresh.client_auth': { sends: 'refresh', like: { form: lacks('client_secret') } },
  },
  tibber: {
    scope: scope('openid profile email offline_access data-api-user-read data-api-homes-read'),
    'settings.client_auth': POST,
    'settings.idle_lifetime': idle(30),
    'settings.retry_lost_answer': LATE,
  },
  viessmann: {
    scope: scope('IoT User offline_access'),
    'settings.idle_lifetime': idle(180),
    'settings.retry_lost_answer': LATE,
  },
  volvo: {
    scope: scope('openid conve:vehicle_relation conve:odometer_status energy:state:read'),
    'settings.login_lifetime': { configures: { loginLifetime: 180 * DAY } },
    'settings.idle_lifetime': idle(7),
    'settings.retry_lost_answer': LATE,
  },
  withings: {
    scope: scope('user.info user.metrics user.activity'),
    'settings.client_auth': POST,
    'settings.pkce': NO_PKCE,
    'settings.scope_separator': link({ scope: 'a,b' }),
    'settings.token_params.action': form('refresh', { action: 'requesttoken' }),
    'settings.token_lifetime': lifetime(DAY / 8, { status: 0, body: TOKENS }),
    'settings.idle_lifetime': idle(365),
    'protocol.response.envelope': { reads: { status: 0, body: TOKENS }, like: { kind: 'granted' } },
    'protocol.response.status': { reads: { status: 503, body: TOKENS }, like: { detail: 'HTTP 200 status 503' } },
    'protocol.response.members.account': {
      ...{ reads: { status: 0, body: { ...TOKENS, userid: 7 } }, like: { tokens: { account: '7' } } },
    },
    'protocol.errors.0': { reads: { status: 601, body: {} }, like: { meaning: 'slow_down' } },
  },
};

/** What a preset says although the hub does it in any case. */
const AS_USUAL = new Map<string, readonly unknown[]>([
  ['settings.login', ['device']],
  ['settings.pkce', [true]],
  ['settings.token_lifetime', ['1h']],
  ['settings.retry_lost_answer', ['early']],
  // With a secret, and without one.
  ['settings.client_auth', ['basic', 'none']],
  ['protocol.operations.revoke.client_id', [false]],
  ['protocol.response.scope_separator', [',']],
]);

const rows = Object.entries(EFFECTS).flatMap(([name, effects]) =>
  Object.entries(effects).map(([path, effect]) => ({ name, path, effect })),
);

let server: RawServer;
beforeAll(async () => {
  const device = { device_code: 'the-device-code', user_code: 'A', verification_uri: 'https://cloud.example' };
  server = await startRawServer((socket, { target }) =>
    socket.end(httpResponse(200, JSON.stringify(target.startsWith('/device_authorization') ? device : TOKENS))),
  );
});
afterAll(() => server[Symbol.asyncDispose]());

test.each(rows)('the preset $name deviates by $path, and no longer without it', async (row) => {
  const preset = findPreset(row.name);
  if (preset === undefined) throw new Error(`there is no preset ${row.name}`);
  const [observed, like] = await observe(preset, row.effect);
  expect(observed).toMatchObject(like);
  const [without] = await observe(removePath(preset, row.path), row.effect);
  expect(without).not.toMatchObject(like);
});

test('every deviation of every preset has a row', () => {
  const deviations = presets().map(({ name, scope: usual, settings, protocol = {} }) => [
    name,
    deviationsOf({ ...(usual !== undefined && { scope: usual }), settings, protocol }),
  ]);
  const named = Object.entries(EFFECTS).map(([name, effects]) => [name, Object.keys(effects)]);
  expect(sorted(named)).toEqual(sorted(deviations));
});

function sorted(entries: (string | string[])[][]) {
  return Object.fromEntries(entries.map(([name, paths]) => [name, [...(paths ?? [])].toSorted()]));
}

/** The paths of what deviates. Endpoints are no deviation: every portal has its own. */
function deviationsOf(value: unknown, path = ''): string[] {
  const isLeaf = typeof value !== 'object' || value === null || path === 'protocol.response.status';
  if (!isLeaf && !/\.\d+$/.test(path)) {
    return Object.entries(value).flatMap(([key, member]) => deviationsOf(member, path === '' ? key : `${path}.${key}`));
  }
  const isUsual = AS_USUAL.get(path)?.some((usual) => JSON.stringify(usual) === JSON.stringify(value));
  return isUsual === true || path.endsWith('_endpoint') ? [] : [path];
}

function removePath(preset: Preset, path: string): Preset {
  const changed = structuredClone(preset);
  const keys = path.split('.');
  const last = keys.pop() ?? '';
  let holder: unknown = changed;
  for (const key of keys) holder = (holder as Record<string, unknown>)[key];
  if (Array.isArray(holder)) holder.splice(Number(last), 1);
  else delete (holder as Record<string, unknown>)[last];
  return changed;
}

/** @returns what the effect is about, and what it must be like */
async function observe(preset: Preset, effect: Effect): Promise<[observed: unknown, like: object]> {
  const configuration = await configure(preset);
  if ('configures' in effect) return [configuration, effect.configures];
  const { settings } = configuration;
  if ('reads' in effect) {
    const { reads, to = 'refresh', status = 200, like } = effect;
    const response = { status, body: JSON.stringify(reads), retryAfter: null, portalTime: null };
    return [readTokenEndpointResponse(response, to, settings), like];
  }
  const login = 'link' in effect ? 'redirect' : settings.login;
  await using portal = connectOAuth2Portal(
    { frontendUrl: server.origin, clientSecret: SECRET },
    { ...settings, login, minRequestInterval: 0 },
  );
  if ('sends' in effect) return [await requestOf(portal, effect.sends), effect.like];
  const requested = await portal.requestLink({ nonce: 'n', scope: 'a b' });
  if (requested.kind !== 'link') throw new Error(JSON.stringify(requested));
  return [Object.fromEntries(new URL(requested.link.authorizeUrl).searchParams), effect.link];
}

/** The request of this operation that arrives at the server. */
async function requestOf(portal: OAuth2Portal, operation: PortalOperation) {
  const [refreshToken, accessToken] = [new Secret('the-refresh-token'), new Secret('the-access-token')];
  if (operation === 'refresh') await portal.refresh(refreshToken);
  else if (operation === 'revoke') await portal.revoke({ refreshToken, accessToken });
  else if (operation === 'code') await portal.exchangeCode(LINK, { code: new Secret('the-code'), issuer: null });
  else {
    const requested = await portal.requestLink({ nonce: 'n', scope: 'a b' });
    if (requested.kind !== 'link' || requested.link.kind !== 'device') throw new Error(JSON.stringify(requested));
    if (operation === 'device_token') await portal.poll(requested.link);
  }
  const { target = '', headers, body } = server.requests.at(-1) ?? {};
  return {
    query: Object.fromEntries(new URL(target, server.origin).searchParams),
    form: Object.fromEntries(new URLSearchParams(body)),
    authorization: headers?.['authorization'],
  };
}

const LINK: RedirectLink = {
  ...{ kind: 'redirect', authorizeUrl: 'https://cloud.example', redirect: 'http://192.168.1.7:8480/callback' },
  ...{ state: 's', verifier: new Secret('v'.repeat(43)), issuer: null, requiresIssuer: false },
};

/** The portal with this preset that a person configures, with its endpoints at the server. */
async function configure(preset: Preset) {
  const { settings, variables = {}, client_secret: secret } = preset;
  const endpoints = Object.keys(settings).filter((key) => key.endsWith('_endpoint'));
  const resolved = resolvePreset(preset, {
    client_id: settings.client_id ?? ID,
    ...(secret !== 'none' && { client_secret_file: 'secret' }),
    variables: Object.fromEntries(Object.entries(variables).map(([name, { default: usual = 'a1' }]) => [name, usual])),
    ...Object.fromEntries(endpoints.map((key) => [key, `${server.origin}/${key}`])),
  });
  if (!resolved.ok) throw new Error([...resolved.problems].join('\n'));
  const [portal] = await readPortals(
    { home: v.parse(portalSchema, resolved.table) },
    {
      ...{ directory: '/', credentialsDirectory: undefined, readSecret: async () => new Secret(SECRET) },
      presets: new Map([['home', { preset, protocol: resolved.protocol }]]),
      report: (key, problem) => expect.fail(`${key} ${problem}`),
      reportTrimmed: () => undefined,
    },
  );
  if (portal?.type !== 'oauth2') throw new Error(`no oauth2 portal: ${portal?.type}`);
  return portal;
}
