import { sha256 } from '../system/compare.ts';

/** Characters of base64url: 96 bits. */
const LENGTH = 16;

/**
 * What a pairing's short link is found by. It is on show, and so can't be the nonce: whoever has that may bring codes. It follows
 * from the nonce alone, and the nonce from nothing, so that a link that was scanned before a restart leads on after it.
 */
export function shortKeyOf(nonce: string): string {
  return sha256(`latchkey short link ${nonce}`).slice(0, LENGTH);
}
