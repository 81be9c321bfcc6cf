// JWTs for client authentication (RFC 7523): good ones, and forged ones in the ways that libraries have fallen for.
import { createHmac } from 'node:crypto';
import type { Dice } from '../dice.ts';
import { mutated, soup } from '../mutations.ts';
import type { HubFacts } from './facts.ts';

export const JWT_BEARER = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

/** Requests name the hub like this, so the issuer is this address. */
const ISSUER = 'https://127.0.0.1';

/** A JWT that the hub must take, once. */
export function goodAssertion(dice: Dice, facts: HubFacts): string {
  return facts.sign(HEADER, claimsOf(dice, facts));
}

/** A JWT that something is wrong with; where it is `forged` no hub may take it. */
export interface OddAssertion {
  readonly text: string;
  readonly forged: boolean;
}

export function oddAssertion(dice: Dice, facts: HubFacts): OddAssertion {
  const claims = claimsOf(dice, facts);
  const parts = facts.sign(HEADER, claims).split('.');
  const [head = '', payload = '', signature = ''] = parts;
  const hmac = base64url(JSON.stringify(dice.of(HMAC_HEADERS, HMAC_HEADER)));
  const key = dice.of([facts.keyed.publicKey, '', facts.keyed.id], '');
  const foreign = createHmac('sha256', key).update(`${hmac}.${payload}`).digest('base64url');
  const none = base64url(dice.of(NO_ALGORITHM, '{}'));
  const change = dice.of(wrongClaims(facts), {});
  const forged = (text: string) => ({ text, forged: true });
  const odd = (text: string) => ({ text, forged: false });
  return dice.of<() => OddAssertion>(
    [
      () => forged(dice.of(facts.assertions, '')),
      () => forged(facts.sign(HEADER, { ...claims, ...change })),
      () => forged(facts.sign(HEADER, { ...claims, ...change })),
      () => odd(facts.sign(HEADER, { ...claims, ...dice.of(ODD_CLAIMS, {}) })),
      () => odd(facts.sign(dice.of<object>(ODD_HEADERS, HEADER), claims)),
      () => forged(`${none}.${payload}.`),
      () => forged(`${none}.${payload}.${signature}`),
      () => forged(`${hmac}.${payload}.${foreign}`),
      () => forged(`${head}.${base64url(JSON.stringify({ ...claims, ...change }))}.${signature}`),
      () => forged(`${head}.${base64url(dice.of(NO_CLAIMS, ''))}.${signature}`),
      () => odd(mutated(dice, parts.join('.'))),
      () => forged(parts.slice(0, dice.below(3)).join('.')),
      () => forged(`${parts.join('.')}.${signature}.${head}`),
      () => forged(soup(dice, 200)),
      () => forged('A'.repeat(dice.below(12_000))),
    ],
    () => odd(''),
  )();
}

/** What no assertion may say of itself. */
function wrongClaims({ now, victimId }: HubFacts): readonly object[] {
  const time = now();
  return [
    { exp: time - 120, iat: time - 170 },
    { exp: time + 3600 },
    { exp: 1e308 },
    { exp: 'x' },
    { exp: undefined },
    { exp: -1 },
    { nbf: time + 600 },
    { iat: time + 600 },
    { iat: {} },
    { aud: 'https://evil.example/oauth/token' },
    { aud: [] },
    { aud: null },
    { aud: undefined },
    { iss: victimId },
    { sub: victimId },
    { iss: victimId, sub: victimId },
    { iss: undefined },
    { sub: ['x'] },
    { jti: undefined },
    { jti: '' },
    { jti: 7 },
  ];
}

const ODD_CLAIMS: readonly object[] = [
  { aud: [ISSUER, 'https://evil.example'] },
  { jti: 'x'.repeat(3000) },
  { jti: '__proto__' },
  { jti: 'constructor' },
  { iat: undefined },
  { exp: 0.5 },
];

function claimsOf(dice: Dice, facts: HubFacts): Record<string, unknown> {
  const { id } = facts.keyed;
  const now = facts.now();
  const jti = Array.from({ length: 4 }, () => dice.below(2 ** 32).toString(36)).join('');
  return { iss: id, sub: id, aud: ISSUER, jti, iat: now, exp: now + 45 };
}

const HEADER = { alg: 'EdDSA', typ: 'JWT' };
const HMAC_HEADER = { alg: 'HS256' };
const HMAC_HEADERS = [HMAC_HEADER, { alg: 'HS256', kid: '../../dev/null' }, { alg: 'HS512' }];
const NO_ALGORITHM = ['{"alg":"none"}', '{"alg":"None","typ":"JWT"}', '{"alg":"nOnE"}', '{}', 'null', '[]'];
const ODD_HEADERS = [
  { alg: 'RS256' },
  { alg: 'EdDSA', crit: ['x'] },
  { alg: 'EdDSA', b64: false, crit: ['b64'] },
  { alg: 'EdDSA', kid: 'unknown' },
  { alg: 'EdDSA', kid: {} },
  { alg: ['EdDSA'] },
  { alg: 'EdDSA', jwk: { kty: 'OKP', crv: 'Ed25519', x: 'AA' } },
  { alg: 'EdDSA', jku: 'http://127.0.0.1:1/' },
  { alg: 'EdDSA', zip: 'DEF' },
];
const NO_CLAIMS = ['', '1', '[]', 'null', '{', '{"exp":1e400}', '"x"', '{"__proto__":{"iss":"x"}}'];

function base64url(text: string): string {
  return Buffer.from(text).toString('base64url');
}
