import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { type EmulatorOptions, OptionError, startEmulator } from '../../../src/emulator/index.ts';
import type { SettingDefinition } from '../../../src/emulator/settings/definitions.ts';
import { SETTINGS } from '../../../src/emulator/settings/settings.ts';
import { root } from '../../project/checkout.ts';
import {
  expectRejections,
  get,
  obtainTokens,
  parseTokens,
  postConfig,
  refreshTokens,
  requestEmulatorApi,
  startTestEmulator,
  test,
} from '../portal-client.ts';

test('the settings of an emulator without options can be read and have the documented defaults', async ({
  emulator,
}) => {
  const response = await get(`${emulator.baseUrl}/_emulator/settings`);
  const defaults = Object.entries(SETTINGS).map(([name, { initial }]) => [spelled(name, '_'), initial]);
  expect(await response.json()).toEqual(Object.fromEntries(defaults));
});

test('a change of settings needs only the changed members, takes effect at once and returns all settings', async () => {
  await using emulator = await startTestEmulator();
  const response = await requestEmulatorApi(emulator, 'PATCH', 'settings', {
    token_lifetime: 60,
    on_reuse: 'revoke-family',
    refuse_redirect_urls: '^http:',
  });
  expect([response.status, await response.json()]).toMatchObject([200, { token_lifetime: 60, code_lifetime: 45 }]);
  expect((await obtainTokens(emulator)).expires_in).toBe(60);
  expect((await postConfig(emulator, 'http://192.168.1.7/')).status).toBe(400);
  emulator.change({ refuseRedirectUrls: null, tokenLifetime: undefined });
  expect((await postConfig(emulator, 'http://192.168.1.7/')).status).toBe(200);
  expect(emulator.settings).toMatchObject({ tokenLifetime: 60, onReuse: 'revoke-family', refuseRedirectUrls: null });
});

test('the emulator rejects an invalid change of settings, names the member and changes nothing', async ({
  emulator,
}) => {
  const before = emulator.settings;
  await expectRejections(emulator, 'PATCH', 'settings', [
    [{ refresh_grace: -1 }, /^refresh_grace: must be a whole number from 0.*\(found -1\)$/],
    [{ refresh_grace_time: -0.5 }, /^refresh_grace_time: must be a number of seconds from 0.*\(found -0.5\)$/],
    [{ token_lifetime: 1.5 }, /^token_lifetime: must be .*\(found 1.5\)$/],
    [{ code_lifetime: 0 }, /^code_lifetime: must be a number of seconds above 0.*\(found 0\)$/],
    [{ basic: 'refused' }, /^basic: must be accept or refuse \(found "refused"; did you mean refuse\?\)$/],
    [{ relay_refusal: 1 }, /^relay_refusal: must be true or false.*\(found 1\)$/],
    [{ refuse_redirect_urls: '(' }, /^refuse_redirect_urls: must be a JavaScript regular expression.*\(found "\("\)$/],
    [{ rate_limit: 1e10 }, /^rate_limit: /],
    [{ scopes: 'a  b' }, /^scopes: must be names with one space between them \(found "a {2}b"\)$/],
    [{ required_headers: 'token:x' }, /^required_headers: must be OPERATION:NAME or OPERATION:NAME=VALUE/],
    [{ basic: 'refuse', tokenLifetime: 60 }, /^tokenLifetime: is unknown \(did you mean token_lifetime\?\)$/],
    ['{"__proto__": {"basic": "refuse"}}', /^__proto__: is unknown; allowed: auto_login, /],
    ['{"basic":', /^body: .*must be valid JSON/],
    ['[]', /^body: /],
  ]);
  expect((await requestEmulatorApi(emulator, 'PATCH', 'settings', { basic: 'refuse' }, 'text/plain')).status).toBe(400);
  expect(emulator.settings).toEqual(before);
  expect(() => emulator.change({ codeLifetime: 0 })).toThrow(/^codeLifetime: must be .*\(found 0\)$/);
});

test('the emulator library rejects an unknown option and suggests the nearest one, and entries of the wrong form', async () => {
  const id = '0d9c3a52-6f2a-4f0e-9a51-0d1a7c9b5e11';
  const cases: [object, RegExp][] = [
    [{ tokenLifeTime: 10 }, /^tokenLifeTime: is unknown \(did you mean tokenLifetime\?\)$/],
    [{ colour: undefined }, /^colour: is unknown; allowed: host, .*, autoLogin, /],
    [{ profile: 'tadoo' }, /^profile: must be .* \(found "tadoo"; did you mean tado\?\)$/],
    [{ clients: [{ id, secret: 'a', redirectURL: 'refuse' }] }, /^clients: redirectURL: .*did you mean redirectUrl\?/],
    [{ users: [{ name: 'ann', pasword: 'hush-hush' }] }, /^users: pasword: is unknown \(did you mean password\?\)$/],
    [{ clients: [{ secret: 'a' }] }, /^clients: id: is missing$/],
    [
      { clients: [{ id, redirectUris: 'http://localhost/cb' }] },
      /^clients: redirectUris: must be a list \(found "http/,
    ],
    [
      { clients: [{ id, redirectUris: ['/cb'] }] },
      /^clients: redirectUris.0: must be an absolute URI in visible ASCII.* \(found "/,
    ],
    [{ clients: ['shop:hush-hush'] }, /^clients: must be a list of objects$/],
    [{ users: [{ name: 'ann', password: 1 }] }, /^users: password: must be a string /],
    [
      { users: [{ name: 'ann', password: 'pw', claims: { exp: 1 } }] },
      /^users: claims.exp: must be another claim than iss, aud, exp, .*which the emulator sets \(found "exp"\)$/,
    ],
    [{ clients: [{ id, claims: { sub: 'x' } }] }, /^clients: claims.sub: must be another claim than sub, iss, /],
    [{ showSecrets: 'no' }, /^showSecrets: must be true or false \(found "no"\)$/],
    [{ host: 5 }, /^host: must be a string \(found 5\)$/],
    [{ port: 65_536 }, /^port: must be a whole number from 0 to 65535 \(found 65536\)$/],
    [{ clock: Date }, /^clock: must be an object with the function now /],
    [
      { intercept: { recieved: () => undefined } },
      /^intercept: must be an object with the function received or answer/,
    ],
    [{ users: { ann: 'hush-hush' } }, /^users: must be a list of objects$/],
    [{ issuers: 'staff' }, /^issuers: must be a list \(found "staff"\)$/],
    [{ redirectUris: ['localhost:3000/cb'] }, /^redirectUris.0: must be an absolute URI.* such as http:/],
    [{ redirectUris: ['https://tool.example/bäck'] }, /^redirectUris.0: must be an absolute URI/],
    [
      { clients: [{ id, postLogoutRedirectUris: ['/bye'] }] },
      /^clients: postLogoutRedirectUris.0: must be an absolute/,
    ],
  ];
  for (const [options, message] of cases) {
    const failed = await startEmulator(options as EmulatorOptions).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(OptionError);
    expect(failed).toMatchObject({ message: expect.stringMatching(message) });
    expect(String(failed)).not.toContain('hush-hush');
  }
});

test('the emulator library says what is wrong with an argument, by the names of the library', async ({ emulator }) => {
  // As plain JavaScript may call it.
  const library = { ...emulator, startEmulator } as object as Record<string, (...args: unknown[]) => unknown>;
  const noObject = /^argument: must be an object \(found (none|null|7|an array)\)$/;
  const takeObjects = ['login', 'approveDevice', 'change', 'addFault'];
  const cases: [name: string, args: unknown[], message: RegExp][] = [
    ...[...takeObjects, 'startEmulator'].flatMap((name) =>
      [null, 7, []].map((wrong): (typeof cases)[number] => [name, [wrong], noObject]),
    ),
    ...takeObjects.map((name): (typeof cases)[number] => [name, [], noObject]),
    ['change', [{ autologin: true }], /^autologin: is unknown \(did you mean autoLogin\?\)$/],
    ['revoke', [], /^grantId: must be a string \(found none\)$/],
    ['revoke', ['', 'tokens'], /^what: must be grant or access_tokens \(found "tokens"\)$/],
    ['removeFault', [], /^id: must be a string \(found none\)$/],
    ['polls', [], /^state: must be a string \(found none\)$/],
    ['secretsIssued', ['code', 'accessToken'], /^kinds.1: must be state, code, .*; did you mean access_token\?\)$/],
    ['advance', ['60'], /^advance: must be a number of seconds/],
    ['approveDevice', [{ user_code: 'WDJB-MJHT' }], /^user_code: is unknown \(did you mean userCode\?\)$/],
    ['approveDevice', [{ userCode: 'WDJB-MJHT', user: 'alice' }], /^userCode: must be the code of a device/],
  ];
  for (const [name, args, message] of cases) {
    const call = async () => library[name]?.(...args);
    await expect(call(), `${name}(${JSON.stringify(args)})`).rejects.toThrow(message);
  }
});

test('a request that has begun keeps the settings that it began with', async () => {
  const arrived = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  let held = false;
  await using emulator = await startTestEmulator({
    intercept: {
      async received() {
        if (!held) return;
        arrived.resolve();
        await gate.promise;
      },
    },
  });
  const first = await obtainTokens(emulator);
  held = true;
  const under = refreshTokens(emulator, first.refresh_token);
  await arrived.promise;
  held = false;
  emulator.change({ tokenLifetime: 60 });
  gate.resolve();
  const second = await parseTokens(await under);
  expect(second.expires_in).toBe(3600);
  expect((await parseTokens(await refreshTokens(emulator, second.refresh_token))).expires_in).toBe(60);
});

test('the guide lists all settings as the code declares them', () => {
  const declared = Object.entries(SETTINGS).map(
    ([name, { initial, nothing, description }]: [string, SettingDefinition<unknown>]) => [
      `--${initial === true ? 'no-' : ''}${spelled(name, '-')}`,
      spelled(name, '_'),
      nothing === undefined ? String(initial) : `${initial}: ${nothing}`,
      description,
    ],
  );
  const guide = readFileSync(join(root, 'docs/emulator.md'), 'utf8');
  const [, table = ''] = /\| flag \| member \|.*\n.*\n((?:\|.*\n)+)/.exec(guide) ?? [];
  const listed = table
    .replaceAll(/`|\]\(#[\w-]+\)|\[/g, '')
    .trim()
    .split('\n')
    .map((row) => row.slice(2, -2).split(' | '));
  expect(listed).toEqual(declared);
});

function spelled(name: string, joint: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `${joint}${letter.toLowerCase()}`);
}
