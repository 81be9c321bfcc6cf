import { expect, it } from 'vitest';
import {
  addedPortal,
  parsePortalTables,
  readAddedPortals,
  serializePortalTables,
} from '../../src/configuration/added-portals.ts';
import { Secret } from '../../src/core/secret.ts';

const SECRET = 'the-secret-of-an-added-portal';
const CLIENT_ID = '0f4b3c52-6a1e-4d9b-9d57-2c8f1e6a7b90';
const HELPER = { base_url: 'https://api.portal.example', frontend_url: 'https://portal.example', client_id: CLIENT_ID };

/** The problems of one portal, by its keys. */
async function problemsOf(keys: Record<string, unknown>, secret: string | null = SECRET) {
  const table = addedPortal(keys, secret === null ? null : new Secret(secret));
  const { portals, problems } = await readAddedPortals({ it: table });
  expect(portals).toHaveLength(problems.size === 0 ? 1 : 0);
  return Object.fromEntries(problems);
}

it('an added portal has the same settings as a declared one, with its secret and without a file', async () => {
  const tables = {
    home: addedPortal({ ...HELPER, client_id: `${CLIENT_ID} ` }, new Secret(` ${SECRET}\n`)),
    tado: addedPortal({ preset: 'tado' }, null),
    own: addedPortal({ issuer: 'https://id.example', client_id: 'hub' }, new Secret(SECRET)),
  };
  const { portals, problems } = await readAddedPortals(parsePortalTables(serializePortalTables(tables)));
  expect([...problems]).toEqual([]);
  const [home, tado, own] = portals;
  expect(home).toMatchObject({ name: 'home', type: 'helper', clientId: CLIENT_ID, appliedBy: 'enter_again' });
  expect(home?.type === 'helper' && home.clientSecret.reveal()).toBe(SECRET);
  expect(home).not.toHaveProperty('secretFile');
  expect(tado).toMatchObject({
    name: 'tado',
    type: 'oauth2',
    preset: { name: 'tado' },
    settings: { clientSecret: null },
  });
  expect(own).toMatchObject({ name: 'own', type: 'oauth2', preset: null });
  expect(own?.type === 'oauth2' && own.settings.clientSecret?.reveal()).toBe(SECRET);
});

it.each([
  ['a missing secret', HELPER, null, { 'portals.it.client_secret': expect.stringContaining('is missing') }],
  ['a secret on two lines', HELPER, 'one\ntwo', { 'portals.it.client_secret': 'must be on one line' }],
  [
    'a missing variable',
    { preset: 'nest', client_id: 'a' },
    SECRET,
    { 'portals.it.variables.project_id': expect.any(String) },
  ],
  ['an unknown preset', { preset: 'tadoo' }, null, { 'portals.it.preset': expect.stringContaining('tado') }],
  ['an unknown key', { ...HELPER, base: 'x' }, SECRET, { 'portals.it.base': expect.stringContaining('unknown key') }],
  [
    'a file with a CA',
    { ...HELPER, ca_file: '/etc/ssl/ca.pem' },
    SECRET,
    { 'portals.it.ca_file': expect.stringContaining('names a file') },
  ],
  [
    'a file with a key',
    { issuer: 'https://id.example', client_id: 'a', client_key_file: '/etc/passwd' },
    null,
    { 'portals.it.client_key_file': expect.stringContaining('names a file') },
  ],
  [
    'a header from a file',
    { issuer: 'https://id.example', client_id: 'a', headers: { 'x-key': { file: '/etc/passwd' } } },
    null,
    { 'portals.it.headers.x-key': expect.stringContaining('names a file') },
  ],
])('an added portal with %s is rejected at its key, and its secret is not shown', async (_, keys, secret, expected) => {
  const problems = await problemsOf(keys, secret);
  expect(problems).toEqual(expected);
  expect(JSON.stringify(problems)).not.toContain(SECRET);
});

it('a portal with a problem does not keep the other added portals from being used', async () => {
  const { portals, problems } = await readAddedPortals({ good: addedPortal({ preset: 'tado' }, null), bad: {} });
  expect(portals.map(({ name }) => name)).toEqual(['good']);
  expect([...problems.keys()].every((key) => key.startsWith('portals.bad'))).toBe(true);
});

it.each([[null], [''], ['no JSON'], ['{"home":1}'], ['[]']])(
  'stored portals that can not be parsed are none: %j',
  (text) => {
    expect(parsePortalTables(text)).toEqual({});
  },
);
