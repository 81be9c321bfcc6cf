// Introductions of appliances (RFC 7591): good ones, and such as would get one more than it may have.
import type { Dice } from '../dice.ts';
import { latin1, mutated, SPECIAL, soup, value } from '../mutations.ts';
import { JSON_TYPE, type Plan } from '../plan.ts';
import type { HubValues } from './values.ts';

/** A registration, with an initial access token or without one. */
export function registrationPlan(values: HubValues): Plan {
  const { dice, facts, good } = values;
  const invited = good || dice.chance(0.5);
  const token = values.one(facts.invites);
  const heads = [JSON_TYPE, ...(invited ? [`Authorization: Bearer ${latin1(token)}`] : [])];
  const body = good ? JSON.stringify(introduction(dice)) : badBody(dice);
  return { origin: 'https', method: 'POST', path: '/oauth/register', heads, body: latin1(body) };
}

const KEY = { kty: 'EC', crv: 'P-256' };
const POINT = {
  x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
  y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
};

function introduction(dice: Dice): Record<string, unknown> {
  const keys = dice.chance(0.2) ? { jwks: { keys: [{ ...KEY, ...POINT }] } } : {};
  return {
    client_name: dice.of(['Heat pump', 'Wallbox 7', 'Z\u00e4hler', '\u7535\u8868'], ''),
    ...(dice.chance(0.5) && { scope: 'Monitoring' }),
    ...(dice.chance(0.5) && { software_id: 'meter-firmware' }),
    ...keys,
  };
}

function badBody(dice: Dice): string {
  const member = dice.of(MEMBERS, '');
  const text = JSON.stringify({
    ...introduction(dice),
    [member]: dice.chance(0.5) ? value(dice) : oddValue(dice, member),
  });
  return dice.of(
    [
      () => text,
      () => text,
      () => text,
      () => mutated(dice, text),
      () => '['.repeat(dice.below(16_000)),
      () => `{"client_name":${'{"a":'.repeat(dice.below(2500))}`,
      () => `${text}${text}`,
      () => `{"client_name":"a","client_name":"b","__proto__":{"scope":"x"}}`,
      () => JSON.stringify({ client_name: soup(dice, 15_000) }),
      () => JSON.stringify(value(dice)),
    ],
    () => text,
  )();
}

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

function oddValue(dice: Dice, member: string): unknown {
  if (member === 'jwks') return { keys: dice.of<unknown>(ODD_KEYS, []) };
  if (member === 'grant_types') return dice.of<unknown>([['password'], ['client_credentials', 'implicit'], [1]], []);
  if (member === 'token_endpoint_auth_method') return dice.of(['none', 'client_secret_jwt', 'private_key_jwt'], '');
  return dice.of([...SPECIAL, '\r\nX-Header: a', '<b>x</b>', 'a'.repeat(5000), '\u202e'], '');
}

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
