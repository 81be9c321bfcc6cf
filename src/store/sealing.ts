import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { Failure } from '../core/failure.ts';

/** Encrypts what must not be read from a stolen SD card. */
export interface Sealing {
  /** Seals a text for one row: it can't be opened as another row's. */
  seal(row: string, text: string): Promise<string>;
  /** @throws Failure `store_key_wrong` where the key is another one, `store_unreadable` where the row is */
  open(row: string, sealed: string): Promise<string>;
}

/** Bytes of a store key (A256GCM). */
export const KEY_BYTES = 32;

/** Of A256GCM (RFC 7518, 5.3): bytes. */
const [IV_BYTES, TAG_BYTES] = [12, 16];

/**
 * Sealing as JWE (RFC 7516) with A256GCM. The row's identity stands in the protected header, so whoever can write the
 * database but does not have the key can't move one appliance's tokens to another. It is done at once: a row is small, and
 * a trip to another thread takes longer.
 * @param key {@link KEY_BYTES} random bytes
 */
export function jweSealing(key: Uint8Array): Sealing {
  return {
    async seal(row, text) {
      const header = base64url(JSON.stringify({ alg: 'dir', enc: 'A256GCM', row }));
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv('aes-256-gcm', key, iv, { authTagLength: TAG_BYTES }).setAAD(Buffer.from(header));
      const ciphertext = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
      return [header, '', ...[iv, ciphertext, cipher.getAuthTag()].map(base64url)].join('.');
    },
    async open(row, sealed) {
      const { header, text } = unsealed(key, row, sealed);
      if (header.row !== row) {
        throw new Failure(
          'store_unreadable',
          `${row} holds what was sealed for another row: the store was tampered with`,
        );
      }
      return text;
    },
  };
}

/** @throws Failure `store_key_wrong` */
function unsealed(key: Uint8Array, row: string, sealed: string): { header: { row?: unknown }; text: string } {
  try {
    const [header = '', , ...parts] = sealed.split('.');
    const [iv, ciphertext, tag] = parts.map((part) => Buffer.from(part, 'base64url'));
    if (iv === undefined || ciphertext === undefined || tag === undefined) throw new Error('this is no JWE');
    const cipher = createDecipheriv('aes-256-gcm', key, iv, { authTagLength: TAG_BYTES });
    cipher.setAAD(Buffer.from(header)).setAuthTag(tag);
    const text = Buffer.concat([cipher.update(ciphertext), cipher.final()]).toString('utf8');
    return { header: JSON.parse(Buffer.from(header, 'base64url').toString('utf8')) as { row?: unknown }, text };
  } catch (cause) {
    throw new Failure(
      'store_key_wrong',
      `the store was sealed with another store.key, or ${row} in it was damaged: put the right key back`,
      { cause },
    );
  }
}

function base64url(data: string | Buffer): string {
  return Buffer.from(data).toString('base64url');
}
