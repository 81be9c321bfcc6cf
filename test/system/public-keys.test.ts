import { generateKeyPairSync, type JsonWebKey } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { parseJwkSet } from '../../src/system/jwk-set.ts';

interface Pair {
  readonly publicKey: JsonWebKey;
  readonly privateKey: JsonWebKey;
}

const encoding = { publicKeyEncoding: { format: 'jwk' }, privateKeyEncoding: { format: 'jwk' } } as const;
const ec = (namedCurve: string) => generateKeyPairSync('ec', { namedCurve, ...encoding }) as unknown as Pair;
const rsa = (modulusLength: number) => generateKeyPairSync('rsa', { modulusLength, ...encoding }) as unknown as Pair;

const p256 = ec('P-256');
const ed25519 = generateKeyPairSync('ed25519', encoding) as unknown as Pair;
const rsa2048 = rsa(2048);

const why = (value: unknown) => {
  const read = parseJwkSet(value);
  return read.kind === 'unusable' ? read.reason : 'usable';
};
const whyKey = (key: unknown) => why({ keys: [key] });

describe('JWK Set of an appliance', () => {
  it.for([
    ['P-256', p256.publicKey],
    ['Ed25519', ed25519.publicKey],
    ['RSA', rsa2048.publicKey],
  ] as const)('a JWK Set with a public %s key is accepted unchanged', ([, key]) => {
    expect(parseJwkSet({ keys: [key] })).toEqual({ kind: 'keys', keys: [key] });
  });

  it('a JWK Set keeps only the key material, alg and kid of a key', () => {
    const key = { ...p256.publicKey, alg: 'ES256', kid: 'one', use: 'sig', key_ops: ['verify'], x5c: ['…'], more: {} };
    const kept = { ...p256.publicKey, alg: 'ES256', kid: 'one' };
    expect(parseJwkSet({ keys: [key], more: 1 })).toEqual({ kind: 'keys', keys: [kept] });
  });

  it('a JWK Set has at most five keys', () => {
    const five = [p256, ed25519, rsa2048, p256, ed25519].map(({ publicKey }) => publicKey);
    expect(parseJwkSet({ keys: five })).toMatchObject({ kind: 'keys' });
    expect(why({ keys: [...five, p256.publicKey] })).toMatch(/6 keys: send at most 5/);
  });

  it.for([null, undefined, 7, '{"keys":[]}', [], [p256.publicKey], p256.publicKey, { keys: {} }, { keys: null }])(
    '%j is not a JWK Set',
    (value) => {
      expect(why(value)).toMatch(/is not a JWK Set: send \{"keys":\[\.\.\.\]\}/);
    },
  );

  it.for<[what: string, key: unknown, says: RegExp]>([
    ['a private P-256 key', p256.privateKey, /key 1 contains the private key/],
    ['a part of a private key', { ...rsa2048.publicKey, dp: 'AQAB' }, /contains the private key/],
    ['a symmetric key', { kty: 'oct', k: 'c2VjcmV0' }, /symmetric key/],
    ['a key of an unknown type', { kty: 'AKP', pub: 'x' }, /not a public key/],
    ['a key whose type is in the prototype', { kty: 'constructor' }, /not a public key/],
    ['no key', null, /not a JSON object/],
    ['a P-384 key', ec('P-384').publicKey, /of a kind/],
    ['a point that is on no curve', { ...p256.publicKey, y: p256.publicKey.x }, /not a public key/],
    ['an RSA key of 1024 bits', rsa(1024).publicKey, /of a kind.*2048 to 4096/],
    [
      'an RSA key of 8192 bits',
      { kty: 'RSA', e: 'AQAB', n: Buffer.alloc(1024, 0xff).toString('base64url') },
      /of a kind/,
    ],
    ['the exponent 1', { ...rsa2048.publicKey, e: 'AQ' }, /of a kind|not a public key/],
    [
      'an exponent of 1024 bits',
      { ...rsa2048.publicKey, e: Buffer.alloc(128, 0xff).toString('base64url') },
      /of a kind|not a public key/,
    ],
    ['a key for signing', { ...p256.publicKey, key_ops: ['sign'] }, /its key_ops must be \["verify"\]/],
    ['a key for encryption', { ...p256.publicKey, use: 'enc' }, /its use must be sig/],
    ['a key for none', { ...p256.publicKey, alg: 'none' }, /alg.*must be ES256/],
    ['an RSA key for HS256', { ...rsa2048.publicKey, alg: 'HS256' }, /alg.*must be RS256 or PS256/],
    ['a kid of 10,000 characters', { ...p256.publicKey, kid: 'k'.repeat(10_000) }, /kid.*1 to 200/],
  ])('a JWK Set with %s is refused with the reason', ([, key, says]) => {
    expect(whyKey(key)).toMatch(says);
    expect(whyKey(key).length).toBeLessThan(200);
  });

  it('the error about a JWK Set names the wrong key by number and reveals nothing of it', () => {
    const { d, x } = p256.privateKey;
    const message = why({ keys: [p256.publicKey, p256.privateKey] });
    expect(message).toMatch(/^key 2 /);
    expect(message).not.toContain(String(d));
    expect(message).not.toContain(String(x));
  });
});
