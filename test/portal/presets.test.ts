import * as v from 'valibot';
import { expect, test } from 'vitest';
import { allClouds, CLOUD_NAMES, findCloud, PROVENANCE } from '../../src/clouds/catalogue.ts';
import { type Cloud, cloudSchema, PLACEHOLDER } from '../../src/clouds/cloud.ts';
import { ODD_ANSWERS } from '../../src/clouds/odd-answers.ts';
import { portalSchema } from '../../src/configuration/portal-schema.ts';
import { resolvePreset } from '../../src/configuration/resolve-preset.ts';
import { checkScope, sameScope } from '../../src/core/connections/scope.ts';
import { parseDuration } from '../../src/system/clock.ts';

test('the catalogue is in the order of the names, and each name is found', () => {
  expect(CLOUD_NAMES).toEqual(CLOUD_NAMES.toSorted());
  for (const name of CLOUD_NAMES) expect(name).toMatch(/^[a-z][a-z0-9-]*$/);
  for (const cloud of allClouds()) expect(findCloud(cloud.name)).toEqual(cloud);
  expect(findCloud('no-such-cloud')).toBeUndefined();
  expect(findCloud('toString')).toBeUndefined();
  expect(CLOUD_NAMES).toEqual(expect.arrayContaining(Object.keys(ODD_ANSWERS)));
});

test('a preset with a misspelt key, without sources, with an http endpoint or with a domain as a variable is invalid', () => {
  const { name: _, ...tado } = findCloud('tado') ?? expect.fail('no tado');
  expect(v.is(cloudSchema, tado)).toBe(true);
  const settings = { token_endpoint: 'https://login.tado.com/oauth2/token', retry_lost_answer: 'late' };
  expect(v.is(cloudSchema, { ...tado, settings })).toBe(true);
  for (const change of [
    { sources: [] },
    { knwon: ['a'] },
    { settings: { token_endpoint: settings.token_endpoint } },
    ...[
      'http://login.tado.com/token',
      'https://{host}/token',
      'https://login.{domain}.com/token',
      'https://login.tado.com/{client_id}/token',
      'https://a:b@login.tado.com/token',
    ].map((url) => ({
      settings: { ...settings, token_endpoint: url },
    })),
    { settings: { ...settings, token_lifetime: '10 minutes' } },
    { protocol: { operations: { code: { placement: 'header' } } } },
  ]) {
    expect(v.is(cloudSchema, { ...tado, ...change }), JSON.stringify(change)).toBe(false);
  }
  const misspelt = { ...settings, token_endpint: settings.token_endpoint };
  const resolved = resolvePreset({ name: 'tado', ...v.parse(cloudSchema, { ...tado, settings: misspelt }) }, {});
  expect(resolved.ok && v.safeParse(portalSchema, { client_id: 'x', ...resolved.table }).issues).toMatchObject([
    { path: [{ key: 'token_endpint' }] },
  ]);
});

test.each(allClouds())('the preset $name is complete', (preset) => {
  const { settings, register, redirect, rotation, client_secret: secret } = preset;
  expect(settings.token_endpoint, 'settings.token_endpoint').toBeDefined();
  expect(
    settings.authorization_endpoint ?? settings.device_authorization_endpoint,
    'settings.authorization_endpoint or settings.device_authorization_endpoint',
  ).toBeDefined();
  expect(redirect !== null, 'a class of redirect URI, if there is a login by redirect').toBe(
    settings.authorization_endpoint !== undefined,
  );
  if (redirect === 'fixed') expect(settings.redirect_uri, 'the address, if redirect is "fixed"').toBeDefined();
  expect(settings.client_id !== undefined, 'either a client_id, or how to register one').toBe(register === null);
  expect(secret === 'none', 'no secret without client authentication').toBe(settings.client_auth === 'none');
  if (settings.login === 'device')
    expect(settings.device_authorization_endpoint, 'where device codes come from').toBeDefined();
  if (preset.scope !== undefined) expect(sameScope(checkScope(preset.scope), preset.scope)).toBe(true);
  expect(rotation.grace !== undefined, 'a grace time, if there is one').toBe(rotation.refresh_token === 'grace');
  const retry = `settings.retry_lost_answer of a cloud whose rotation.refresh_token is "${rotation.refresh_token}"`;
  if (rotation.refresh_token === 'single_use') expect(settings.retry_lost_answer, retry).toBe('late');
  if (['grace', 'reusable', 'unchanged'].includes(rotation.refresh_token)) {
    expect(settings.retry_lost_answer, retry).toBe('early');
  }
  if (register !== null && redirect !== null && redirect !== 'fixed' && settings.login !== 'device') {
    expect(register.steps.join(), 'the step that registers the redirect URI').toContain('{redirect_uri}');
  }
});

test.each(allClouds())(
  'what the page shows of the preset $name is there in German, too',
  ({ register, variables = {}, de }) => {
    const { steps = [], variables: germanTexts = {} } = de;
    const placeholders = (texts: readonly string[]) => texts.map(placeholdersOf);
    expect(placeholders(steps), 'each of register.steps in de.steps').toEqual(placeholders(register?.steps ?? []));
    expect(Object.keys(germanTexts), 'each of variables in de.variables').toEqual(Object.keys(variables));
    for (const language of [variables, germanTexts])
      for (const [name, { label }] of Object.entries(language)) expect(label, 'what people call it').not.toBe(name);
  },
);

test('no cloud repeats what holds for all', () => {
  expect(JSON.stringify(allClouds())).not.toContain(PROVENANCE);
});

test.each(allClouds())('the durations and URLs of the preset $name are what the configuration accepts', (preset) => {
  const { settings, protocol, api } = preset;
  for (const key of ['token_lifetime', 'login_lifetime', 'idle_lifetime', 'min_request_interval'] as const) {
    if (settings[key] !== undefined) expect(parseDuration(String(settings[key])), key).toBeGreaterThan(0);
  }
  for (const text of textsOf([settings, protocol, api])) {
    if (/^[a-z]+:\/\//.test(text) && text !== settings.redirect_uri) expect(text).toMatch(/^https:\/\//);
  }
});

test.each(allClouds())(
  'the placeholders of the preset $name are variables, whose values cannot change the meaning of a URL',
  (preset) => {
    const { settings, protocol = {}, api, register, variables = {} } = preset;
    const used = textsOf([settings, protocol, api]).flatMap(placeholdersOf);
    expect(new Set(used.filter((name) => name !== 'client_id'))).toEqual(new Set(Object.keys(variables)));
    for (const text of register?.steps ?? []) expect([[], ['redirect_uri']]).toContainEqual(placeholdersOf(text));
    for (const { pattern, default: usual } of Object.values(variables)) {
      const matches = (value: string) => new RegExp(pattern).test(value);
      if (usual !== undefined) expect(matches(usual)).toBe(true);
      for (const special of '/?#@:%&=\\{}\n ') {
        for (const value of [special, `a${special}`, `${special}a`, `eu${special}`]) expect(matches(value)).toBe(false);
      }
      expect(matches('')).toBe(false);
      expect(matches('..')).toBe(false);
    }
  },
);

/** A preset for the rules of merging; the clouds' own may change. */
const example: Cloud = {
  name: 'example',
  ...v.parse(cloudSchema, {
    title: 'Example',
    summary: 'Nothing',
    register: { url: 'https://portal.example/apps', steps: ['Register {redirect_uri}.'] },
    client_secret: 'required',
    redirect: 'https',
    de: { summary: 'Nichts' },
    variables: {
      project_id: { label: 'Project ID', description: 'the ID of the project, such as "a-1"', pattern: '^[a-z0-9-]+$' },
      // An alternation without a group: the anchors hold for all of it nevertheless.
      region: { label: 'Region', description: '"eu" or "na"', pattern: '^eu|na$', default: 'eu' },
    },
    settings: {
      authorization_endpoint: 'https://portal.example/{project_id}/authorize',
      token_endpoint: 'https://{region}.portal.example/token',
      revocation_endpoint: 'https://{region}.portal.example/revoke',
      client_auth: 'basic',
      token_lifetime: '1h',
      authorization_params: { prompt: 'consent', app: '{client_id}' },
      token_params: { audience: 'https://{region}.portal.example' },
      error_codes: { login_required: 'invalid_grant' },
      retry_lost_answer: 'late',
    },
    protocol: {
      operations: {
        code: { client_auth: 'none', params: { action: 'new', key: '{client_id}' } },
        device_authorization: { params: { action: 'new' } },
        revoke: { client_auth: 'bearer' },
      },
    },
    rotation: { refresh_token: 'unknown', note: 'Not known.' },
    api: { headers: { 'x-key': '{client_id}' }, probe: { method: 'GET', url: 'https://{region}.portal.example/me' } },
    known: ['Nothing.'],
    unverified: [],
    sources: ['portal.example'],
  }),
};
const variables = { project_id: 'a-1' };

test('a preset fills in what the configuration leaves out, with its variables and their defaults', () => {
  const resolved = resolve({ preset: 'example', client_id: 'hub', variables });
  expect(resolved.table).toEqual({
    preset: 'example',
    type: 'oauth2',
    client_id: 'hub',
    variables,
    authorization_endpoint: 'https://portal.example/a-1/authorize',
    token_endpoint: 'https://eu.portal.example/token',
    revocation_endpoint: 'https://eu.portal.example/revoke',
    client_auth: 'basic',
    token_lifetime: '1h',
    authorization_params: { prompt: 'consent', app: 'hub' },
    token_params: { audience: 'https://eu.portal.example' },
    error_codes: { login_required: 'invalid_grant' },
    retry_lost_answer: 'late',
  });
  expect(resolved.protocol).toEqual({
    operations: {
      code: { client_auth: 'none', params: { action: 'new', key: 'hub' } },
      device_authorization: { params: { action: 'new' } },
      revoke: { client_auth: 'bearer' },
    },
  });
});

test('what the configuration says wins, key by key in tables, and its own braces are left alone', () => {
  const own = {
    variables: { project_id: 'a-1', region: 'na' },
    token_lifetime: '2h',
    authorization_params: { prompt: '{region}', login_hint: 'a' },
    headers: { 'x-secret': { file: 'a.secret' } },
    error_codes: { mine: 'access_denied' },
    token_params: 'not a table',
  };
  expect(resolve(own).table).toMatchObject({
    token_endpoint: 'https://na.portal.example/token',
    token_lifetime: '2h',
    authorization_params: { prompt: '{region}', login_hint: 'a', app: '{client_id}' },
    headers: { 'x-secret': { file: 'a.secret' } },
    error_codes: { login_required: 'invalid_grant', mine: 'access_denied' },
    token_params: 'not a table',
  });
});

test("what the configuration says wins over the preset's protocol", () => {
  const own = { client_auth: 'post', token_params: { action: 'mine' } };
  expect(resolve({ ...own, variables }).protocol).toEqual({
    operations: {
      code: { params: { key: '{client_id}' } },
      device_authorization: { params: { action: 'new' } },
      revoke: { client_auth: 'bearer' },
    },
  });
});

test("no refresh token goes to the preset's cloud if the configuration names another", () => {
  const token_endpoint = 'https://127.0.0.1:8443/token';
  const elsewhere = resolve({ token_endpoint, variables });
  expect(elsewhere.table['token_endpoint']).toBe(token_endpoint);
  expect(elsewhere.table).not.toHaveProperty('revocation_endpoint');
  const discovered = resolve({ issuer: 'https://127.0.0.1:8443', variables });
  expect(JSON.stringify([discovered.table, discovered.protocol])).not.toMatch(
    /portal\.example\/[^"]*(token|refresh|revoke|auth)/,
  );
});

test('a missing, ill-formed or unknown variable is a problem of its key, which says what it must be', () => {
  expect(problems({})).toEqual({
    'variables.project_id': 'is missing; it must be the ID of the project, such as "a-1"',
  });
  expect(problems({ variables: { project_id: 'a/../b', region: 7, place: 'x' } })).toEqual({
    'variables.project_id': 'must be the ID of the project, such as "a-1" (found "a/../b")',
    'variables.region': 'must be "eu" or "na" (found 7)',
    'variables.place': 'unknown key; the preset "example" has these variables: project_id, region',
  });
  for (const region of ['eu.evil.example', 'evil.example/na', 'eu\n', '']) {
    expect(problems({ variables: { ...variables, region } })).toHaveProperty(['variables.region']);
  }
  expect(problems({ variables: 'a-1' })).toHaveProperty('variables', 'must be a table');
});

function resolve(table: Record<string, unknown>) {
  const resolved = resolvePreset(example, table);
  if (!resolved.ok) throw new Error([...resolved.problems].join('\n'));
  return resolved;
}

function problems(table: Record<string, unknown>) {
  const resolved = resolvePreset(example, table);
  return resolved.ok ? null : Object.fromEntries(resolved.problems);
}

function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsOf) : [];
}

function placeholdersOf(text: string): string[] {
  return [...text.matchAll(PLACEHOLDER)].map(([, name = '']) => name);
}
