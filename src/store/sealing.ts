import { CompactEncrypt, compactDecrypt } from 'jose';
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

/**
 * Sealing as JWE (RFC 7516) with A256GCM. The row's identity stands in the protected header, so whoever can write the
 * database but does not have the key can't move one appliance's tokens to another.
 * @param key {@link KEY_BYTES} random bytes
 */
export function jweSealing(key: Uint8Array): Sealing {
  return {
    seal(row, text) {
      const jwe = new CompactEncrypt(new TextEncoder().encode(text));
      return jwe.setProtectedHeader({ alg: 'dir', enc: 'A256GCM', row }).encrypt(key);
    },
    async open(row, sealed) {
      const options = { keyManagementAlgorithms: ['dir'], contentEncryptionAlgorithms: ['A256GCM'] };
      const { plaintext, protectedHeader } = await compactDecrypt(sealed, key, options).catch((cause: unknown) => {
        throw new Failure(
          'store_key_wrong',
          `the store was sealed with another store.key, or ${row} in it was damaged: put the right key back`,
          { cause },
        );
      });
      if (protectedHeader['row'] !== row) {
        throw new Failure(
          'store_unreadable',
          `${row} holds what was sealed for another row: the store was tampered with`,
        );
      }
      return new TextDecoder().decode(plaintext);
    },
  };
}
