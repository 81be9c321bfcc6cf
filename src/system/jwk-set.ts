import { createPublicKey, type KeyObject } from 'node:crypto';
import type { PublicJwk } from '../core/appliances/appliance.ts';

/** The keys of a JWK Set, or what is wrong with it and what to do, as a phrase without its subject. */
type JwkSetResult =
  | { readonly kind: 'keys'; readonly keys: readonly PublicJwk[] }
  | { readonly kind: 'unusable'; readonly reason: string };

/** An appliance needs two keys while it rotates them; a few more are permitted. */
const MAX_KEYS = 5;
/** Characters of a `kid`. */
const MAX_KID = 200;
/** Bits of an RSA key. A small machine takes too long to verify signatures of longer keys. */
const RSA_BITS = { min: 2048, max: 4096 };
/** The largest public exponent of an RSA key. A small machine takes too long to verify signatures with a larger one. */
const MAX_EXPONENT = 0xffff_ffffn;
/** RFC 7518, 6.2.2, 6.3.2 and 6.4.1. */
const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];

const SUPPORTED_KEYS = 'send public keys of P-256, Ed25519, or RSA with 2048 to 4096 bits';

/**
 * Parses a JWK Set (RFC 7517, 5) of public keys for signatures. Of each key it keeps only the key material, `alg` and
 * `kid`. Messages never contain a key, because it may be a private one that was sent by mistake.
 */
export function parseJwkSet(value: unknown): JwkSetResult {
  const keys = isObject(value) ? value['keys'] : undefined;
  if (!Array.isArray(keys)) return unusable('is not a JWK Set: send {"keys":[...]} (RFC 7517, 5)');
  if (keys.length === 0) return unusable(`has no key: ${SUPPORTED_KEYS}`);
  if (keys.length > MAX_KEYS) return unusable(`has ${keys.length} keys: send at most ${MAX_KEYS}`);
  const parsedKeys: PublicJwk[] = [];
  for (const [index, key] of keys.entries()) {
    const result = parseJwk(key);
    if (typeof result === 'string') return unusable(`key ${index + 1} ${result}`);
    parsedKeys.push(result);
  }
  return { kind: 'keys', keys: parsedKeys };
}

/** @returns the key, or what is wrong with it */
function parseJwk(key: unknown): PublicJwk | string {
  if (!isObject(key)) return 'is not a JSON object: send a JWK';
  if (key['kty'] === 'oct') return `is a symmetric key, which both sides would have to keep secret: ${SUPPORTED_KEYS}`;
  if (PRIVATE_MEMBERS.some((member) => member in key)) {
    return 'contains the private key, which nobody else may know: create another key pair, and send only its public key';
  }
  let parsed: KeyObject;
  try {
    parsed = createPublicKey({ key, format: 'jwk' });
  } catch {
    return `is not a public key (its members are invalid): ${SUPPORTED_KEYS}`;
  }
  const algorithms = algorithmsOf(parsed);
  if (algorithms === null) return `is of a kind that the hub can't use: ${SUPPORTED_KEYS}`;
  const { use, key_ops, alg, kid } = key;
  if (use !== undefined && use !== 'sig') return 'is not for signatures: its use must be sig, or left out';
  if (key_ops !== undefined && !(Array.isArray(key_ops) && key_ops.length === 1 && key_ops[0] === 'verify')) {
    return 'is not for verifying signatures: its key_ops must be ["verify"], or left out';
  }
  if (alg !== undefined && !(typeof alg === 'string' && algorithms.includes(alg))) {
    return `has an alg that does not fit the key: it must be ${algorithms.join(' or ')}, or left out`;
  }
  if (kid !== undefined && !(typeof kid === 'string' && kid.length > 0 && kid.length <= MAX_KID)) {
    return `has an invalid kid: it must be a string of 1 to ${MAX_KID} characters, or left out`;
  }
  return {
    ...parsed.export({ format: 'jwk' }),
    ...(typeof alg === 'string' && { alg }),
    ...(typeof kid === 'string' && { kid }),
  };
}

/** The signature algorithms of a key (RFC 7518, 3.1; RFC 8037, 3.1) that the hub accepts; null for none. */
function algorithmsOf({ asymmetricKeyType, asymmetricKeyDetails = {} }: KeyObject): readonly string[] | null {
  const { namedCurve, modulusLength: bits = 0, publicExponent: exponent = 0n } = asymmetricKeyDetails;
  if (asymmetricKeyType === 'ed25519') return ['EdDSA', 'Ed25519'];
  if (asymmetricKeyType === 'ec' && namedCurve === 'prime256v1') return ['ES256'];
  // With an exponent of 1 anybody could create valid signatures.
  const isSound = exponent >= 3n && exponent % 2n === 1n && exponent <= MAX_EXPONENT;
  if (asymmetricKeyType === 'rsa' && bits >= RSA_BITS.min && bits <= RSA_BITS.max && isSound) return ['RS256', 'PS256'];
  return null;
}

function unusable(reason: string): JwkSetResult {
  return { kind: 'unusable', reason };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
