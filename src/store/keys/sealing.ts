import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { Failure } from '../../core/failure.ts';
import { timingSafeEqualText } from '../../system/compare.ts';

/** Protects a store with its key: seals what nobody may read, and signs what nobody may change. */
export interface Sealing {
  /** Seals a text for one row: it can't be opened as another row's. */
  seal(row: string, text: string): string;
  /** @throws Failure `store_key_wrong` where the key is another one, `store_unreadable` where the row is */
  open(row: string, sealed: string): string;
  /** The authentication code of a row whose columns are readable: HMAC-SHA256 over its table, and all columns with a value. */
  sign(table: string, row: object): string;
  /** Whether the row's column `mac` is its authentication code: nobody without the key has changed it since. */
  isSigned(table: string, row: SignedRow): boolean;
}

/** A row with its authentication code; null in one that was never signed. */
interface SignedRow {
  readonly mac: string | null;
}

/** Bytes of a store key; so many each of the keys derived from it has (A256GCM, HMAC-SHA256). */
export const KEY_BYTES = 32;

/** RFC 7518, 5.3: bytes of the initialization vector, and of the authentication tag. */
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** Columns that a code does not cover: itself, and the order that SQLite gives rows. */
const UNSIGNED = new Set(['mac', 'number']);

/**
 * Sealing as JWE (RFC 7516) with A256GCM, and signing with HMAC-SHA256, each with a key of its own that HKDF (RFC 5869)
 * derives from the store's key. The row's identity stands in the JWE's protected header, so whoever can write the database
 * but does not have the key can't move one appliance's tokens to another.
 * @param key {@link KEY_BYTES} random bytes
 */
export function jweSealing(key: Uint8Array): Sealing {
  const derived = (use: string) => new Uint8Array(hkdfSync('sha256', key, '', `latchkey store: ${use}`, KEY_BYTES));
  const rowKey = derived('row authentication');
  const sign = (table: string, row: object) =>
    createHmac('sha256', rowKey)
      .update(JSON.stringify([table, signedColumns(row)]))
      .digest('base64url');
  return {
    ...jwe(derived('sealing')),
    sign,
    isSigned: (table, row) => row.mac !== null && timingSafeEqualText(row.mac, sign(table, row)),
  };
}

/** Columns without a value are left out: a table that gets another one that may be null keeps its codes. */
function signedColumns(row: object): [string, unknown][] {
  const columns: [string, unknown][] = Object.entries(row);
  return columns
    .filter(([name, value]) => value !== null && value !== undefined && !UNSIGNED.has(name))
    .sort(([a], [b]) => (a < b ? -1 : 1));
}

/**
 * By Node's own calls, since those of jose are asynchronous: a row has to be sealed in the turn in which it is written, so
 * that it is never written with a key that another has replaced meanwhile.
 */
function jwe(key: Uint8Array): Pick<Sealing, 'seal' | 'open'> {
  return {
    seal(row, text) {
      const header = Buffer.from(JSON.stringify({ alg: 'dir', enc: 'A256GCM', row })).toString('base64url');
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv('aes-256-gcm', key, iv, { authTagLength: TAG_BYTES }).setAAD(Buffer.from(header));
      const content = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
      return [header, '', ...[iv, content, cipher.getAuthTag()].map((part) => part.toString('base64url'))].join('.');
    },
    open(row, sealed) {
      const { header, text } = opened(key, row, sealed);
      if (JSON.parse(header).row === row) return text;
      throw new Failure(
        'store_unreadable',
        `${row} holds what was sealed for another row: the store was tampered with`,
      );
    },
  };
}

function opened(key: Uint8Array, row: string, sealed: string): { readonly header: string; readonly text: string } {
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
      `the store was sealed with another store.key, or ${row} in it was damaged: put the right key back`,
      { cause },
    );
  }
}
