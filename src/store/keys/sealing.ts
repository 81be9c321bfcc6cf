import { createCipheriv, createDecipheriv, createSecretKey, hkdfSync, type KeyObject, randomBytes } from 'node:crypto';
import { Failure } from '../../core/failure.ts';

/** Encrypts and authenticates the rows of a store with its key. */
export interface Sealing {
  /** Seals a text for one row: it can't be opened as the text of another row. */
  seal(row: string, text: string): string;
  /** @throws Failure `store_key_wrong` if it was sealed with another key, `store_unreadable` if for another row */
  open(row: string, sealed: string): string;
}

/** Bytes of a store key, and of the key that is derived from it (A256GCM). */
export const STORE_KEY_BYTES = 32;

/** Bytes of the initialization vector and of the authentication tag (RFC 7518, 5.3). */
const IV_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Sealing as JWE (RFC 7516) with A256GCM, with a key that HKDF (RFC 5869) derives from the store's key. The JWE's
 * protected header contains the row's identity. So an attacker who can write the database but does not have the key
 * can't move the tokens or the secret of one appliance to another.
 *
 * Uses Node's crypto instead of jose, which is asynchronous: a row must be sealed in the same turn in which it is
 * written, so that it is never written with a key that was replaced meanwhile.
 * @param storeKey {@link STORE_KEY_BYTES} random bytes
 */
export function jweSealing(storeKey: Uint8Array): Sealing {
  const derived = hkdfSync('sha256', storeKey, '', 'latchkey store: sealing', STORE_KEY_BYTES);
  // Not its bytes: Node would make a key of them for each row, which takes longer than the cipher.
  const key = createSecretKey(new Uint8Array(derived));
  return {
    seal(row, text) {
      const header = Buffer.from(JSON.stringify({ alg: 'dir', enc: 'A256GCM', row })).toString('base64url');
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv('aes-256-gcm', key, iv, { authTagLength: TAG_BYTES }).setAAD(Buffer.from(header));
      const content = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
      return [header, '', ...[iv, content, cipher.getAuthTag()].map((part) => part.toString('base64url'))].join('.');
    },
    open(row, sealed) {
      const { header, text } = decrypt(key, row, sealed);
      if (JSON.parse(header).row === row) return text;
      throw new Failure(
        'store_unreadable',
        `${row} contains a value that was sealed for another row: the store was tampered with`,
      );
    },
  };
}

function decrypt(key: KeyObject, row: string, sealed: string): { readonly header: string; readonly text: string } {
  try {
    const [header = '', , iv = '', content = '', tag = ''] = sealed.split('.');
    const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(iv, 'base64url'), { authTagLength: TAG_BYTES })
      .setAAD(Buffer.from(header))
      .setAuthTag(Buffer.from(tag, 'base64url'));
    const text = Buffer.concat([decipher.update(content, 'base64url'), decipher.final()]).toString();
    return { header: Buffer.from(header, 'base64url').toString(), text };
  } catch (cause) {
    throw new Failure(
      'store_key_wrong',
      `the store was sealed with another store.key, or ${row} in it was damaged: restore the right key`,
      { cause },
    );
  }
}
