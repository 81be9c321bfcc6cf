// JWTs for client authentication (RFC 7523): valid ones, and ones that are forged in ways that libraries have accepted
// in the past.
import fc from 'fast-check';
import { forgedJwt } from '../jwt.ts';
import { base64url, mutatedText } from '../texts.ts';
import type { HubFacts } from './facts.ts';

export const JWT_BEARER = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

/** The hub's issuer, which follows from the Host header of the requests. */
const ISSUER = 'https://127.0.0.1';

/** A JWT that the hub must accept once. */
export function validAssertion(facts: HubFacts): fc.Arbitrary<string> {
  return claimsOf(facts).map((claims) => facts.sign(HEADER, claims));
}

/** A faulty JWT. If it is `forged`, the hub must not accept it. */
export interface FaultyAssertion {
  readonly text: string;
  readonly forged: boolean;
}

export function faultyAssertion(facts: HubFacts): fc.Arbitrary<FaultyAssertion> {
  const { keyed, known, sign } = facts;
  const claims = claimsOf(facts);
  const signed = claims.map((right) => sign(HEADER, right));
  const change = fc.nat(WRONG_CLAIMS.length - 1).map((index) => WRONG_CLAIMS[index]?.(facts) ?? {});
  const unsigned = fc.tuple(claims, change).map(([right, wrong]) => {
    const [head, , signature] = sign(HEADER, right).split('.');
    return `${head}.${base64url(JSON.stringify({ ...right, ...wrong }))}.${signature}`;
  });
  const forged = fc.oneof(
    { arbitrary: known.one('assertions'), weight: 4 },
    { arbitrary: fc.tuple(claims, change).map(([right, wrong]) => sign(HEADER, { ...right, ...wrong })), weight: 2 },
    unsigned,
    { arbitrary: forgedJwt(signed, [keyed.publicKey, '', keyed.id]), weight: 9 },
  );
  const odd = fc.oneof(
    fc.tuple(claims, fc.constantFrom(...ODD_CLAIMS)).map(([right, wrong]) => sign(HEADER, { ...right, ...wrong })),
    fc.tuple(claims, fc.constantFrom(...ODD_HEADERS)).map(([right, header]) => sign(header, right)),
    mutatedText(signed),
  );
  return fc.oneof(
    { arbitrary: forged.map((text) => ({ text, forged: true })), weight: 14 },
    { arbitrary: odd.map((text) => ({ text, forged: false })), weight: 3 },
  );
}

/** Claims that no assertion may have. */
const WRONG_CLAIMS: readonly ((facts: HubFacts) => object)[] = [
  ({ now }) => ({ exp: now() - 120, iat: now() - 170 }),
  ({ now }) => ({ exp: now() + 3600 }),
  () => ({ exp: 1e308 }),
  () => ({ exp: 'x' }),
  () => ({ exp: undefined }),
  () => ({ exp: -1 }),
  ({ now }) => ({ nbf: now() + 600 }),
  ({ now }) => ({ iat: now() + 600 }),
  () => ({ iat: {} }),
  () => ({ aud: 'https://evil.example/oauth/token' }),
  () => ({ aud: [] }),
  () => ({ aud: null }),
  () => ({ aud: undefined }),
  ({ victimId }) => ({ iss: victimId }),
  ({ victimId }) => ({ sub: victimId }),
  ({ victimId }) => ({ iss: victimId, sub: victimId }),
  () => ({ iss: undefined }),
  () => ({ sub: ['x'] }),
  () => ({ jti: undefined }),
  () => ({ jti: '' }),
  () => ({ jti: 7 }),
];

const ODD_CLAIMS: readonly object[] = [
  { aud: [ISSUER, 'https://evil.example'] },
  { jti: 'x'.repeat(3000) },
  { jti: '__proto__' },
  { jti: 'constructor' },
  { iat: undefined },
  { exp: 0.5 },
];

function claimsOf({ keyed: { id }, now }: HubFacts): fc.Arbitrary<Record<string, unknown>> {
  const jti = fc
    .tuple(...Array.from({ length: 4 }, () => fc.nat()))
    .map((some) => some.map((one) => one.toString(36)).join(''));
  return jti.map((jti) => ({ iss: id, sub: id, aud: ISSUER, jti, iat: now(), exp: now() + 45 }));
}

const HEADER = { alg: 'EdDSA', typ: 'JWT' };
const ODD_HEADERS: readonly object[] = [
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
