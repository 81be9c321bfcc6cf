import { createPublicKey, type JsonWebKey } from 'node:crypto';
import type { PublicKey } from '../core/appliances/appliance.ts';

/** What a JWK Set holds, or what is wrong with it and what to do, in one sentence. */
export type KeysRead =
  | { readonly kind: 'keys'; readonly keys: readonly PublicKey[] }
  | { readonly kind: 'unusable'; readonly why: string };

/** Keys of one set: two while an appliance changes from one to the next, and a few more. */
const MAX_KEYS = 5;
/** Characters of a `kid`. */
const MAX_KID = 200;
/** Bits of an RSA key: checking a signature of a longer one takes a small machine too long. */
const RSA_BITS = { least: 2048, most: 4096 };
/** The largest public exponent in use, for the same reason. */
const MAX_EXPONENT = 0xffff_ffffn;

/** The members that a public key of each type consists of (RFC 7518, 6; RFC 8037, 2), and the signatures it can check. */
const TYPES: Readonly<Record<string, { readonly members: readonly string[]; readonly algorithms: readonly string[] }>> =
  {
    EC: { members: ['crv', 'x', 'y'], algorithms: ['ES256'] },
    OKP: { members: ['crv', 'x'], algorithms: ['EdDSA', 'Ed25519'] },
    RSA: { members: ['n', 'e'], algorithms: ['RS256', 'PS256'] },
  };
const CURVES: Readonly<Record<string, string>> = { EC: 'P-256', OKP: 'Ed25519' };
/** RFC 7518, 6.2.2, 6.3.2 and 6.4.1. */
const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];

const USABLE = 'send public keys of P-256, Ed25519, or RSA with 2048 to 4096 bits';

/**
 * Reads a JWK Set (RFC 7517, 5) of public keys for signatures. Of each key the members that make it are taken, and nothing
 * else. No key is said back: it may be a private one in the wrong place.
 */
export function readPublicKeys(value: unknown): KeysRead {
  const keys = isObject(value) ? value['keys'] : undefined;
  if (!Array.isArray(keys)) return unusable('is no JWK Set: send {"keys":[...]} (RFC 7517, 5)');
  if (keys.length === 0) return unusable(`holds no key: ${USABLE}`);
  if (keys.length > MAX_KEYS) return unusable(`holds ${keys.length} keys: send at most ${MAX_KEYS}`);
  const read: PublicKey[] = [];
  for (const [index, key] of keys.entries()) {
    const taken = readKey(key);
    if (typeof taken === 'string') return unusable(`key ${index + 1} ${taken}`);
    read.push(taken);
  }
  return { kind: 'keys', keys: read };
}

/** @returns the key, or what is wrong with it */
function readKey(key: unknown): PublicKey | string {
  if (!isObject(key)) return 'is no JSON object: send a JWK';
  if (key['kty'] === 'oct') return `is a symmetric key, which both sides would have to keep secret: ${USABLE}`;
  if (PRIVATE_MEMBERS.some((member) => member in key)) {
    return 'holds the private key, which nobody else may know: make another pair, and send its public half alone';
  }
  const { kty } = key;
  const type = typeof kty === 'string' && Object.hasOwn(TYPES, kty) ? TYPES[kty] : undefined;
  if (typeof kty !== 'string' || type === undefined) return `is of a type that the hub can't use: ${USABLE}`;
  if (kty in CURVES && key['crv'] !== CURVES[kty]) return `is on a curve that the hub can't use: ${USABLE}`;
  const use = useOf(key, type.algorithms);
  if (typeof use === 'string') return use;
  const bare = Object.fromEntries(['kty', ...type.members].map((member) => [member, key[member]]));
  return problemOf(bare) ?? { ...bare, ...use };
}

/** What a key is for, where it says so (RFC 7517, 4.2 to 4.5). */
function useOf(
  { use, key_ops, alg, kid }: Readonly<Record<string, unknown>>,
  algorithms: readonly string[],
): Readonly<Record<string, string>> | string {
  if (use !== undefined && use !== 'sig') return 'is not for signatures: its use must be sig, or left out';
  if (key_ops !== undefined && !(Array.isArray(key_ops) && key_ops.length === 1 && key_ops[0] === 'verify')) {
    return 'is not for checking signatures: its key_ops must be ["verify"], or left out';
  }
  if (alg !== undefined && !(typeof alg === 'string' && algorithms.includes(alg))) {
    return `has an alg that does not go with it: it must be ${algorithms.join(' or ')}, or left out`;
  }
  if (kid !== undefined && !(typeof kid === 'string' && kid.length > 0 && kid.length <= MAX_KID)) {
    return `has a kid that is none: it must be a text of at most ${MAX_KID} characters, or left out`;
  }
  return { ...(typeof alg === 'string' && { alg }), ...(typeof kid === 'string' && { kid }) };
}

function problemOf(bare: JsonWebKey): string | null {
  try {
    const { asymmetricKeyDetails } = createPublicKey({ key: bare, format: 'jwk' });
    const { modulusLength: bits, publicExponent: exponent } = asymmetricKeyDetails ?? {};
    if (bits === undefined || exponent === undefined) return null;
    if (bits < RSA_BITS.least || bits > RSA_BITS.most) return `is an RSA key with ${bits} bits: ${USABLE}`;
    if (exponent < 3n || exponent % 2n === 0n || exponent > MAX_EXPONENT) {
      return 'is an RSA key with a public exponent that nobody uses: take 65537';
    }
    return null;
  } catch {
    return `is no public key (its members make no sense): ${USABLE}`;
  }
}

function unusable(why: string): KeysRead {
  return { kind: 'unusable', why };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
