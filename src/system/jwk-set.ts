import { createPublicKey, type KeyObject } from 'node:crypto';
import type { PublicJwk } from '../core/appliances/appliance.ts';

/** What a JWK Set holds, or what is wrong with it and what to do, in one sentence. */
export type JwkSetResult =
  | { readonly kind: 'keys'; readonly keys: readonly PublicJwk[] }
  | { readonly kind: 'unusable'; readonly reason: string };

/** Keys of one set: two while an appliance changes from one to the next, and a few more. */
const MAX_KEYS = 5;
/** Characters of a `kid`. */
const MAX_KID = 200;
/** Bits of an RSA key: checking a signature of a longer one takes a small machine too long. */
const RSA_BITS = { least: 2048, most: 4096 };
/** The greatest public exponent of an RSA key: checking a signature with a longer one takes a small machine too long. */
const MAX_EXPONENT = 0xffff_ffffn;
/** RFC 7518, 6.2.2, 6.3.2 and 6.4.1. */
const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];

const SUPPORTED_KEYS = 'send public keys of P-256, Ed25519, or RSA with 2048 to 4096 bits';

/**
 * Reads a JWK Set (RFC 7517, 5) of public keys for signatures. Of each key the members that make it are taken, and nothing
 * else. No key is said back: it may be a private one in the wrong place.
 */
export function parseJwkSet(value: unknown): JwkSetResult {
  const keys = isObject(value) ? value['keys'] : undefined;
  if (!Array.isArray(keys)) return unusable('is no JWK Set: send {"keys":[...]} (RFC 7517, 5)');
  if (keys.length === 0) return unusable(`holds no key: ${SUPPORTED_KEYS}`);
  if (keys.length > MAX_KEYS) return unusable(`holds ${keys.length} keys: send at most ${MAX_KEYS}`);
  const read: PublicJwk[] = [];
  for (const [index, key] of keys.entries()) {
    const taken = parseJwk(key);
    if (typeof taken === 'string') return unusable(`key ${index + 1} ${taken}`);
    read.push(taken);
  }
  return { kind: 'keys', keys: read };
}

/** @returns the key, or what is wrong with it */
function parseJwk(key: unknown): PublicJwk | string {
  if (!isObject(key)) return 'is no JSON object: send a JWK';
  if (key['kty'] === 'oct') return `is a symmetric key, which both sides would have to keep secret: ${SUPPORTED_KEYS}`;
  if (PRIVATE_MEMBERS.some((member) => member in key)) {
    return 'holds the private key, which nobody else may know: make another pair, and send its public half alone';
  }
  let parsed: KeyObject;
  try {
    parsed = createPublicKey({ key, format: 'jwk' });
  } catch {
    return `is no public key (its members make no sense): ${SUPPORTED_KEYS}`;
  }
  const algorithms = algorithmsOf(parsed);
  if (algorithms === null) return `is of a kind that the hub can't use: ${SUPPORTED_KEYS}`;
  const { use, key_ops, alg, kid } = key;
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
  return {
    ...parsed.export({ format: 'jwk' }),
    ...(typeof alg === 'string' && { alg }),
    ...(typeof kid === 'string' && { kid }),
  };
}

/** The signatures that a key can check (RFC 7518, 3.1; RFC 8037, 3.1), of those that the hub takes; null for none. */
function algorithmsOf({ asymmetricKeyType, asymmetricKeyDetails = {} }: KeyObject): readonly string[] | null {
  const { namedCurve, modulusLength: bits = 0, publicExponent: exponent = 0n } = asymmetricKeyDetails;
  if (asymmetricKeyType === 'ed25519') return ['EdDSA', 'Ed25519'];
  if (asymmetricKeyType === 'ec' && namedCurve === 'prime256v1') return ['ES256'];
  // With the exponent 1 anybody can sign.
  const isSound = exponent >= 3n && exponent % 2n === 1n && exponent <= MAX_EXPONENT;
  if (asymmetricKeyType === 'rsa' && bits >= RSA_BITS.least && bits <= RSA_BITS.most && isSound)
    return ['RS256', 'PS256'];
  return null;
}

function unusable(why: string): JwkSetResult {
  return { kind: 'unusable', reason: why };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
