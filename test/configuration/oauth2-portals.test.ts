import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { allClouds } from '../../src/clouds/catalogue.ts';
import { loadConfiguration, readConfiguration } from '../../src/configuration/configuration.ts';
import type { OAuth2PortalConfiguration } from '../../src/configuration/portals.ts';
import { stateFolder } from '../support/state-folder.ts';

const folder = stateFolder();
const file = join(folder.path, 'latchkey.toml');
afterAll(() => folder[Symbol.dispose]());

beforeAll(() => {
  write('secret', 'the-secret-of-the-cloud');
  write('api.key', 'the-api-key');
  write('client.pem', generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString());
  write('public.pem', generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' }).toString());
});

function write(name: string, content: string): void {
  writeFileSync(join(folder.path, name), content, { mode: 0o600 });
}

/** The portal `[portals.cloud]` with these lines. */
async function load(lines: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<OAuth2PortalConfiguration> {
  write('latchkey.toml', ['[portals.cloud]', ...lines, ''].join('\n'));
  const [portal] = (await loadConfiguration(file, { HOME: folder.path, ...env })).portals;
  if (portal?.type !== 'oauth2') throw new Error(`there is no oauth2 portal: ${portal?.type}`);
  return portal;
}

async function errorOf(lines: readonly string[]): Promise<string> {
  write('latchkey.toml', ['[portals.cloud]', ...lines, ''].join('\n'));
  const { errors } = await readConfiguration(file, { HOME: folder.path });
  return errors.map(({ message }) => message).join('\n');
}

const BASE = ['type = "oauth2"', 'client_id = "latchkey"'];
const ISSUER = [...BASE, 'issuer = "https://id.cloud.example"'];

describe('a portal of type oauth2', () => {
  it('a portal of type oauth2 needs an issuer and a client, and everything else has a default', async () => {
    const { settings, ...portal } = await load(ISSUER);
    expect(portal).toMatchObject({
      name: 'cloud',
      clientId: 'latchkey',
      preset: null,
      policy: { retryLostAnswer: 'early' },
    });
    expect(settings).toEqual({
      issuer: 'https://id.cloud.example',
      clientId: 'latchkey',
      clientAuth: null,
      clientSecret: null,
      endpoints: { authorization: null, token: null, deviceAuthorization: null, revocation: null },
      clientKey: null,
      login: 'auto',
      redirectUri: null,
      pkce: true,
      scopeSeparator: ' ',
      defaultScope: null,
      authorizationParams: {},
      tokenParams: {},
      headers: {},
      tokenLifetime: null,
      minRequestInterval: null,
      errorCodes: {},
      protocol: {},
      readsErrorsOfSuccess: true,
      readAnswer: null,
    });
  });

  it('a portal of type oauth2 takes all keys', async () => {
    const { settings, ...portal } = await load([
      ...BASE,
      'authorization_endpoint = "https://id.cloud.example/authorize"',
      'token_endpoint = "https://id.cloud.example/token"',
      'device_authorization_endpoint = "https://id.cloud.example/device"',
      'revocation_endpoint = "https://id.cloud.example/revoke"',
      'client_secret_file = "secret"',
      'client_key_file = "client.pem"',
      'client_auth = "private_key_jwt"',
      'login = "paste"',
      'redirect_uri = "com.vendor.app://login"',
      'pkce = false',
      'scope_separator = ","',
      'authorization_params = { access_type = "offline" }',
      'token_params = { audience = "a" }',
      'headers = { X-Api-Key = { file = "api.key" }, X-Version = "1" }',
      'error_codes = { login_required = "invalid_grant" }',
      'token_lifetime = "10m"',
      'login_lifetime = "7d"',
      'idle_lifetime = "30d"',
      'min_request_interval = "6s"',
      'refresh_ends_access_token = true',
      'retry_lost_answer = "late"',
    ]);
    expect(portal).toMatchObject({
      policy: {
        loginLifetime: 604_800_000,
        idleLifetime: 2_592_000_000,
        refreshEndsAccessToken: true,
        retryLostAnswer: 'late',
      },
      secretFile: join(folder.path, 'secret'),
    });
    expect(settings).toMatchObject({
      login: 'paste',
      redirectUri: 'com.vendor.app://login',
      pkce: false,
      scopeSeparator: ',',
      authorizationParams: { access_type: 'offline' },
      tokenParams: { audience: 'a' },
      errorCodes: { login_required: 'invalid_grant' },
      tokenLifetime: 600_000,
      minRequestInterval: 6000,
      clientAuth: 'private_key_jwt',
      clientKey: { key: { type: 'private' } },
    });
    expect(settings.headers['X-Api-Key']?.reveal()).toBe('the-api-key');
    expect(settings.headers['X-Version']?.reveal()).toBe('1');
    expect(settings.clientSecret?.reveal()).toBe('the-secret-of-the-cloud');
  });

  it.each<[string, readonly string[], RegExp]>([
    ['no client', ['type = "oauth2"', 'issuer = "https://a.example"'], /portals\.cloud\.client_id: is missing/],
    ['no endpoint', BASE, /portals\.cloud\.token_endpoint: is missing; add it, or the issuer/],
    [
      'no way to log in',
      [...BASE, 'token_endpoint = "https://a.example/token"'],
      /authorization_endpoint: is missing; add it, or device_authorization_endpoint/,
    ],
    [
      'an issuer on http',
      [...BASE, 'issuer = "http://id.cloud.example"'],
      /^(?!.*endpoint: is missing).*issuer: must be an https URL/s,
    ],
    [
      'a misspelt key that tells the kind of the portal',
      ['isuer = "https://id.cloud.example"', 'client_id = "hub"'],
      /portals\.cloud\.isuer: unknown key \(did you mean issuer\?\)\n(?!.*(base|frontend)_url)/s,
    ],
    [
      'an unknown key',
      [...ISSUER, 'clientid = "a"'],
      /portals\.cloud\.clientid: unknown key \(did you mean client_id\?\)$/,
    ],
    ['a script as an address', [...ISSUER, 'redirect_uri = "javascript:alert(1)"'], /redirect_uri: must be a URL/],
    ['a key without its file', [...ISSUER, 'client_auth = "private_key_jwt"'], /client_key_file: is missing/],
    ['a secret as a header file', [...ISSUER, 'headers = { a = { file = "none" } }'], /headers\.a: names a file that/],
    ['Basic without a secret', [...ISSUER, 'client_auth = "basic"'], /client_secret_file: is missing/],
    [
      'an error code that OAuth does not have',
      [...ISSUER, 'error_codes = { a = "b" }'],
      /error_codes\.a: must be a table of the portal's own error codes .*\(found "b"\)/,
    ],
    ['variables without a preset', [...ISSUER, 'variables = { a = "b" }'], /variables: needs a preset; remove it, or/],
  ])('a portal of type oauth2 is rejected with %s', async (_, lines, message) => {
    expect(await errorOf(lines)).toMatch(message);
  });

  it.each([
    ['a long text outside ASCII', '{ X = "sécret-4711-4711-4711" }', /headers\.X: must be a text of printable ASCII/],
    ['a text in place of the table', '"sécret"', /headers: must be a table of texts or files/],
    ['a wrong name', '{ "a b" = "sécret" }', /headers\.a b: must be a table of texts or files/],
  ])('a portal of type oauth2 shows no value of a header in the error about %s', async (_, headers, message) => {
    const error = await errorOf([...ISSUER, `headers = ${headers}`]);
    expect(error).toMatch(message);
    expect(error).not.toContain('cret');
    expect(error.split('\n')).toHaveLength(1);
  });

  it.each(['client_id', 'redirect_uri', 'state', 'code_challenge', 'grant_type', 'code', 'refresh_token'])(
    'a portal of type oauth2 is rejected with a parameter %s, which is one of the hub itself',
    async (parameter) => {
      for (const key of ['authorization_params', 'token_params']) {
        const error = await errorOf([...ISSUER, `${key} = { ${parameter} = "a" }`]);
        expect(error).toMatch(
          new RegExp(`portals\\.cloud\\.${key}\\.${parameter}: is a parameter that the hub sets itself; remove it$`),
        );
      }
    },
  );
});

describe('a portal with a preset', () => {
  it.each(allClouds().map(({ name }) => name))('%s needs only what has to be registered', async (name) => {
    const preset = allClouds().find((one) => one.name === name);
    const variables = Object.entries(preset?.variables ?? {}).map(
      ([key, { default: usual }]) => `${key} = "${usual ?? 'a1'}"`,
    );
    const portal = await load([
      `preset = "${name}"`,
      ...(preset?.register === null ? [] : ['client_id = "our-client"']),
      ...(preset?.client_secret === 'none' ? [] : ['client_secret_file = "secret"']),
      ...(variables.length === 0 ? [] : [`variables = { ${variables.join(', ')} }`]),
      ...(preset?.settings.login === undefined && preset?.redirect === 'fixed' ? ['login = "paste"'] : []),
    ]);
    expect(portal).toMatchObject({ type: 'oauth2', preset: { name } });
    expect(portal.settings.endpoints.token ?? portal.settings.issuer).toMatch(/^https:/);
  });

  it('a portal with a preset is complete with the name of the preset if the cloud published its client', async () => {
    const { settings, policy } = await load(['preset = "tado"']);
    expect(settings).toMatchObject({ login: 'device', clientAuth: 'none', defaultScope: 'offline_access' });
    expect(policy.idleLifetime).toBe(2_592_000_000);
  });

  it.each<[string, readonly string[], RegExp]>([
    ['a misspelled preset', ['preset = "tadoo"'], /preset: must be the name of a preset \(did you mean tado\?\) \("/],
    ['the other type', ['preset = "tado"', 'type = "helper"'], /portals\.cloud\.type: must be "oauth2"/],
    ['a missing client', ['preset = "netatmo"', 'client_secret_file = "secret"'], /client_id: is missing/],
  ])('a portal with a preset is rejected with %s', async (_, lines, message) => {
    expect(await errorOf(lines)).toMatch(message);
  });
});
