// What each preset changes about a portal with the hub's defaults. Each kind of deviation shows itself by an effect; each
// preset is tried with and without each of its deviations. Odd answers: responses.test.ts. The presets as a whole, at the doubles of their clouds: presets-matrix.test.ts.

import * as v from 'valibot';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { allClouds, findCloud } from '../../src/clouds/catalogue.ts';
import { type Cloud, PLACEHOLDER } from '../../src/clouds/cloud.ts';
import { ODD_ANSWERS, type PortalOperation } from '../../src/clouds/odd-answers.ts';
import { portalSchema } from '../../src/configuration/portal-schema.ts';
import { readPortals } from '../../src/configuration/portals.ts';
import { resolvePreset } from '../../src/configuration/resolve-preset.ts';
import type { RedirectLink } from '../../src/core/portals/login-link.ts';
import { Secret } from '../../src/core/secret.ts';
import type { OAuth2Portal } from '../../src/portal/oauth2/oauth2-portal.ts';
import { readTokenEndpointResponse } from '../../src/portal/responses.ts';
import { parseDuration } from '../../src/system/clock.ts';
import { httpResponse, type RawServer, startRawServer } from '../support/raw-server.ts';
import { connectOAuth2Portal } from './oauth2/oauth2-portal-harness.ts';

const [ID, SECRET] = ['the-client', 'the-secret'];
const TOKENS = { access_token: 'aaa', refresh_token: 'rrr', token_type: 'bearer' };

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

const form = (sends: PortalOperation, members: object): Effect => ({ sends, like: { form: has(members) } });
const link = (parameters: object): Effect => ({ link: has(parameters) });

/** How each key shows itself; `*` stands for the name of an operation or of a member. */
const EFFECTS: Readonly<Record<string, (value: never, member: string, operation: PortalOperation) => Effect>> = {
  scope: (defaultScope: string) => ({ configures: { settings: { defaultScope } } }),
  'settings.retry_lost_answer': (retryLostAnswer: string) => ({ configures: { policy: { retryLostAnswer } } }),
  'settings.refresh_ends_access_token': (ends: boolean) => ({
    configures: { policy: { refreshEndsAccessToken: ends } },
  }),
  'settings.login_lifetime': (text: string) => ({ configures: { policy: { loginLifetime: parseDuration(text) } } }),
  'settings.idle_lifetime': (text: string) => ({ configures: { policy: { idleLifetime: parseDuration(text) } } }),
  'settings.min_request_interval': (text: string) => ({
    configures: { settings: { minRequestInterval: parseDuration(text) } },
  }),
  'settings.token_lifetime': (text: string) => ({ reads: TOKENS, like: { tokens: { lifetime: parseDuration(text) } } }),
  'settings.client_auth': () => form('code', { client_id: ID, client_secret: SECRET }),
  'settings.client_id': (id: string) => form('refresh', { client_id: id }),
  'settings.pkce': () => ({ link: lacks('code_challenge') }),
  'settings.scope_separator': (separator: string) => link({ scope: `a${separator}b` }),
  'settings.authorization_params.*': (value: string, name) => link({ [name]: value }),
  'settings.token_params.*': (value: string, name) => form('refresh', { [name]: value }),
  'settings.error_codes.*': (code: 'access_denied' | 'invalid_grant', own) => ({
    reads: { error: own },
    to: code === 'access_denied' ? 'device_token' : 'refresh',
    status: 401,
    like: { meaning: { access_denied: 'denied', invalid_grant: 'refused' }[code] },
  }),
  'protocol.device_pkce': () => form('device_token', { code_verifier: expect.any(String) }),
  'protocol.account_member': (member: string) => ({
    reads: { ...TOKENS, [member]: 'anna' },
    like: { tokens: { account: 'anna' } },
  }),
  'protocol.operations.*.params.*': (value: string, name, operation) => form(operation, { [name]: value }),
  'protocol.operations.*.placement': (_, __, operation) => ({
    sends: operation,
    like: { form: {}, query: has({ grant_type: expect.any(String) }) },
  }),
  'protocol.operations.*.client_id': (isSent: boolean, _, operation) => ({
    sends: operation,
    like: { form: isSent ? has({ client_id: ID }) : lacks('client_id') },
  }),
  'protocol.operations.*.grant_type': (value: string, _, operation) => form(operation, { grant_type: value }),
  'protocol.operations.*.client_auth': (method: 'none' | 'bearer', _, operation) => ({
    sends: operation,
    like: { none: { form: lacks('client_secret') }, bearer: { authorization: 'Bearer the-access-token' } }[method],
  }),
  'protocol.operations.*.token': (_, __, operation) => form(operation, { token: 'the-access-token' }),
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
]);

const rows = allClouds().flatMap(({ name, scope, settings, protocol = {} }) =>
  deviationsOf({ ...(scope !== undefined && { scope }), settings, protocol }).map((path) => ({ name, path })),
);

let server: RawServer;
beforeAll(async () => {
  const device = { device_code: 'the-device-code', user_code: 'A', verification_uri: 'https://cloud.example' };
  server = await startRawServer((socket, { target }) =>
    socket.end(httpResponse(200, JSON.stringify(target.startsWith('/device_authorization') ? device : TOKENS))),
  );
});
afterAll(() => server[Symbol.asyncDispose]());

test.each(rows)('the preset $name deviates by $path, and no longer without it', async ({ name, path }) => {
  const preset = findCloud(name) ?? expect.fail(`there is no preset ${name}`);
  const effect = effectOf(preset, path);
  const [observed, like] = await observe(preset, effect);
  expect(observed).toMatchObject(like);
  const [without] = await observe(removePath(preset, path), effect);
  expect(without).not.toMatchObject(like);
});

function effectOf(preset: Cloud, path: string): Effect {
  const pattern = Object.keys(EFFECTS).find((one) => new RegExp(`^${one.replaceAll('*', '[^.]+')}$`).test(path));
  const effect = EFFECTS[pattern ?? ''] ?? expect.fail(`${path} needs an effect in this file`);
  const keys = path.split('.');
  let value: unknown = preset;
  for (const key of keys) value = (value as Record<string, unknown>)[key];
  const filled =
    typeof value === 'string' ? value.replaceAll(PLACEHOLDER, (_, name) => variableOf(preset, name)) : value;
  return effect(filled as never, keys.at(-1) ?? '', keys[2] as PortalOperation);
}

function variableOf({ variables = {} }: Cloud, name: string): string {
  return name === 'client_id' ? ID : (variables[name]?.default ?? 'a1');
}

/** The paths of what deviates. Endpoints are no deviation: every portal has its own. */
function deviationsOf(value: unknown, path = ''): string[] {
  if (typeof value === 'object' && value !== null) {
    return Object.entries(value).flatMap(([key, member]) => deviationsOf(member, path === '' ? key : `${path}.${key}`));
  }
  const isUsual = AS_USUAL.get(path)?.some((usual) => JSON.stringify(usual) === JSON.stringify(value));
  return isUsual === true || path.endsWith('_endpoint') ? [] : [path];
}

function removePath(preset: Cloud, path: string): Cloud {
  const changed = structuredClone(preset);
  const keys = path.split('.');
  const last = keys.pop() ?? '';
  let holder: unknown = changed;
  for (const key of keys) holder = (holder as Record<string, unknown>)[key];
  delete (holder as Record<string, unknown>)[last];
  return changed;
}

/** @returns what the effect is about, and what it must be like */
async function observe(preset: Cloud, effect: Effect): Promise<[observed: unknown, like: object]> {
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
    { ...settings, login, minRequestInterval: null },
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
  kind: 'redirect',
  authorizeUrl: 'https://cloud.example',
  redirect: 'http://192.168.1.7:8480/callback',
  state: 's',
  verifier: new Secret('v'.repeat(43)),
  issuer: null,
  requiresIssuer: false,
};

/** The portal with this preset that a person configures, with its endpoints at the server. */
async function configure(preset: Cloud) {
  const { settings, variables = {}, client_secret: secret } = preset;
  const endpoints = Object.keys(settings).filter((key) => key.endsWith('_endpoint'));
  const resolved = resolvePreset(preset, {
    client_id: settings.client_id ?? ID,
    ...(secret !== 'none' && { client_secret_file: 'secret' }),
    variables: Object.fromEntries(Object.keys(variables).map((name) => [name, variableOf(preset, name)])),
    ...Object.fromEntries(endpoints.map((key) => [key, `${server.origin}/${key}`])),
  });
  if (!resolved.ok) throw new Error([...resolved.problems].join('\n'));
  const [portal] = await readPortals(
    { home: v.parse(portalSchema, resolved.table) },
    {
      directory: '/',
      credentialsDirectory: undefined,
      readSecret: async () => new Secret(SECRET),
      invalidKeys: new Set<string>(),
      presets: new Map([
        ['home', { preset, protocol: resolved.protocol, readAnswer: ODD_ANSWERS[preset.name] ?? null }],
      ]),
      report: (key, problem) => expect.fail(`${key} ${problem}`),
    },
  );
  if (portal?.type !== 'oauth2') throw new Error(`no oauth2 portal: ${portal?.type}`);
  return portal;
}
