// Introductions of appliances (RFC 7591): good ones, and such as would get one more than it may have.
import fc from 'fast-check';
import { JSON_TYPE, type Plan, plan } from '../requests.ts';
import { latin1, merged, mutated, repeated, sometimes, special, text, value } from '../texts.ts';
import type { HubFacts } from './facts.ts';
import { valuesOf } from './values.ts';

/** A registration, with an initial access token or without one. */
export function registrationPlan(facts: HubFacts, good: boolean): fc.Arbitrary<Plan> {
  const token = valuesOf(facts, good).one(facts.known.one('invites')).map(latin1);
  const authorization = text`Authorization: Bearer ${token}`;
  const invited = good ? authorization : sometimes(50, authorization, fc.constant(''));
  const body = (good ? introduction.map((right) => JSON.stringify(right)) : badBody).map(latin1);
  return plan({ origin: 'https', method: 'POST', path: '/oauth/register', heads: [JSON_TYPE, invited], body });
}

const KEY = { kty: 'EC', crv: 'P-256' };
const POINT = {
  x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
  y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
};

const introduction = merged<unknown>(
  fc.record({ client_name: fc.constantFrom('Heat pump', 'Wallbox 7', 'Z\u00e4hler', '\u7535\u8868') }),
  sometimes(50, fc.constant({ scope: 'Monitoring' }), fc.constant({})),
  sometimes(50, fc.constant({ software_id: 'meter-firmware' }), fc.constant({})),
  sometimes(20, fc.constant({ jwks: { keys: [{ ...KEY, ...POINT }] } }), fc.constant({})),
);

const MEMBERS = [
  'client_name',
  'scope',
  'software_id',
  'jwks',
  'jwks_uri',
  'token_endpoint_auth_method',
  'grant_types',
  'redirect_uris',
  'response_types',
  'software_statement',
  'client_id',
  'client_secret',
  '__proto__',
];

const ODD_KEYS = [
  [{ ...KEY, ...POINT, d: 'jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI' }],
  [{ kty: 'oct', k: 'AAAA' }],
  [{ ...KEY, ...POINT, x: 'AA' }],
  [{ ...KEY, crv: 'P-521' }],
  [{ kty: 'RSA', n: 'AQAB', e: 'AQAB' }],
  [{ kty: 'OKP', crv: 'Ed25519', x: '' }],
  Array.from({ length: 60 }, () => ({ ...KEY, ...POINT })),
  [{ ...KEY, ...POINT, kid: 'x'.repeat(4000) }],
  [null],
  {},
  'x',
];

const ODD_VALUES = new Map<string, fc.Arbitrary<unknown>>([
  ['jwks', fc.constantFrom<unknown>(...ODD_KEYS).map((keys) => ({ keys }))],
  ['grant_types', fc.constantFrom<unknown>(['password'], ['client_credentials', 'implicit'], [1])],
  ['token_endpoint_auth_method', fc.constantFrom('none', 'client_secret_jwt', 'private_key_jwt')],
]);

const oddMember = fc.oneof(
  ...MEMBERS.map((name) => {
    const strange = fc.constantFrom('\r\nX-Header: a', '<b>x</b>', 'a'.repeat(5000), '\u202e');
    return fc.oneof(value, ODD_VALUES.get(name) ?? fc.oneof(special, strange)).map((one) => ({ [name]: one }));
  }),
);

// Spread, so that a member named __proto__ is one.
const oddIntroduction = fc.tuple(introduction, oddMember).map(([right, odd]) => JSON.stringify({ ...right, ...odd }));

const badBody: fc.Arbitrary<string> = fc.oneof(
  { arbitrary: oddIntroduction, weight: 3 },
  mutated(oddIntroduction),
  repeated('[', 16_000),
  text`{"client_name":${repeated('{"a":', 2500)}`,
  oddIntroduction.map((twice) => twice + twice),
  fc.constant('{"client_name":"a","client_name":"b","__proto__":{"scope":"x"}}'),
  repeated('x', 15_000).map((client_name) => JSON.stringify({ client_name })),
  value.map((one) => JSON.stringify(one)),
);
