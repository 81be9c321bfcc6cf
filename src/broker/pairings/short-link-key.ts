import { sha256 } from '../../system/secret-hash.ts';

/** Characters of base64url: 96 bits. */
const KEY_LENGTH = 16;

/**
 * What a pairing's short link is found by. A browser that opens the short link counts as sent to the portal by the hub, so the key
 * must not follow from the nonce, which the portal's own link has in it for anybody to read. It follows from the pairing's id,
 * which only the installer's page and the control socket tell while the pairing is open, so that nothing is kept for it, and a
 * link that was scanned before a restart leads on after it.
 * @param id of the pairing: a version 4 UUID
 */
export function shortLinkKey(id: string): string {
  return sha256(`latchkey short link ${id}`).slice(0, KEY_LENGTH);
}
