import { createHash, createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import type { PrivateKey } from 'oauth4webapi';

/** The private key of a client that authenticates with signed assertions (RFC 7523), with its key ID if it has one. */
export interface ClientKey extends PrivateKey {
  /** The thumbprints of its certificate, as members of the header (RFC 7515, 4.1.7 and 4.1.8). */
  readonly thumbprints: Readonly<Record<string, string>>;
}

/** The Web Crypto parameters of the signatures that a kind of key makes (RFC 7518, 3.1). */
const EC_CURVES: Readonly<Record<string, string>> = { prime256v1: 'P-256', secp384r1: 'P-384', secp521r1: 'P-521' };

/**
 * Reads a private key: a JWK (RFC 7517) or PEM (PKCS #8), which may also contain the certificate of the key. RSA keys
 * sign with RS256.
 * @throws Error with a message that fits after the name of the configuration key
 */
export async function parseClientKey(text: string): Promise<ClientKey> {
  const jwk = parseJwk(text);
  const key = readKey(jwk, text);
  const algorithm = algorithmOf(key);
  if (algorithm === null) throw new Error('must be an RSA, EC (P-256, P-384, P-521) or Ed25519 key');
  const kid = jwk?.['kid'];
  const pkcs8 = key.export({ type: 'pkcs8', format: 'der' });
  const signingKey = await crypto.subtle.importKey('pkcs8', new Uint8Array(pkcs8), algorithm, false, ['sign']);
  return { key: signingKey, ...(typeof kid === 'string' && { kid }), thumbprints: thumbprintsOf(jwk, text) };
}

/** Another key of the same kind, which no portal knows. */
export async function anotherKey(clientKey: ClientKey): Promise<ClientKey> {
  const pair = await crypto.subtle.generateKey(clientKey.key.algorithm, false, ['sign', 'verify']);
  if (!('privateKey' in pair)) throw new TypeError('no key pair');
  return { ...clientKey, key: pair.privateKey };
}

/** Microsoft Entra accepts no assertion without the thumbprint of the certificate. */
function thumbprintsOf(jwk: Record<string, unknown> | null, text: string): Record<string, string> {
  const [pem] = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/.exec(text) ?? [];
  if (pem === undefined) {
    const members = Object.entries(jwk ?? {}).filter(([name]) => name === 'x5t' || name === 'x5t#S256');
    return Object.fromEntries(members.map(([name, value]) => [name, String(value)]));
  }
  const { raw } = new X509Certificate(pem);
  const digest = (algorithm: string) => createHash(algorithm).update(raw).digest('base64url');
  return { x5t: digest('sha1'), 'x5t#S256': digest('sha256') };
}

function readKey(jwk: Record<string, unknown> | null, text: string): KeyObject {
  try {
    return jwk === null ? createPrivateKey(text) : createPrivateKey({ key: jwk, format: 'jwk' });
  } catch {
    // Without the cause: its message may quote the key.
    throw new Error('must contain a private key as a JWK or in PEM');
  }
}

function parseJwk(text: string): Record<string, unknown> | null {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && parsed !== null ? { ...parsed } : null;
  } catch {
    return null;
  }
}

function algorithmOf({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject) {
  if (type === 'rsa') return { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' };
  if (type === 'ed25519') return { name: 'Ed25519' };
  const namedCurve = type === 'ec' ? EC_CURVES[details?.namedCurve ?? ''] : undefined;
  return namedCurve === undefined ? null : { name: 'ECDSA', namedCurve };
}
