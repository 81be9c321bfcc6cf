import { CompactEncrypt, compactDecrypt, decodeProtectedHeader } from 'jose';
import { Failure } from '../core/failure.ts';
import type { Secret } from '../core/secret.ts';

/** RFC 7518 section 4.8: the key is made of the passphrase by PBKDF2 with SHA-512. */
const ALGORITHM = 'PBES2-HS512+A256KW';
const ENCRYPTION = 'A256GCM';
/** Rounds of PBKDF2: about a second on a Pi. OWASP asks for 210,000 with SHA-512. */
const ROUNDS = 600_000;
/** A copy that wants more rounds was made to keep the hub busy. */
const MOST_ROUNDS = 2_000_000;

/** Encrypts a text with a passphrase, as a JWE (RFC 7516, compact). */
export function sealWithPassphrase(text: string, passphrase: Secret): Promise<string> {
  return new CompactEncrypt(new TextEncoder().encode(text))
    .setProtectedHeader({ alg: ALGORITHM, enc: ENCRYPTION, typ: 'latchkey-copy' })
    .setKeyManagementParameters({ p2c: ROUNDS })
    .encrypt(keyOf(passphrase));
}

/** @throws Failure `copy_unusable` */
export async function openWithPassphrase(sealed: string, passphrase: Secret): Promise<string> {
  const header = headerOf(sealed);
  if (header['alg'] !== ALGORITHM || header['typ'] !== 'latchkey-copy') {
    throw new Failure(
      'copy_unusable',
      'this is no copy that "latchkey backup" made, or it is damaged: name another file',
    );
  }
  if (typeof header['p2c'] !== 'number' || header['p2c'] > MOST_ROUNDS) {
    throw new Failure(
      'copy_unusable',
      `the copy asks for more than ${MOST_ROUNDS} rounds of key derivation: take one that "latchkey backup" made`,
    );
  }
  const options = {
    keyManagementAlgorithms: [ALGORITHM],
    contentEncryptionAlgorithms: [ENCRYPTION],
    maxPBES2Count: MOST_ROUNDS,
  };
  const opened = await compactDecrypt(sealed, keyOf(passphrase), options).catch(() => {
    throw new Failure(
      'copy_unusable',
      'the passphrase is wrong, or the copy is damaged: try again, or take another copy',
    );
  });
  return new TextDecoder().decode(opened.plaintext);
}

function headerOf(sealed: string): Record<string, unknown> {
  try {
    return { ...decodeProtectedHeader(sealed) };
  } catch {
    return {};
  }
}

function keyOf(passphrase: Secret): Uint8Array {
  return new TextEncoder().encode(passphrase.reveal());
}
