import { sha256 } from '../../system/secret-hash.ts';

/** Characters of base64url: 96 bits. */
const KEY_LENGTH = 16;

/**
 * The key of a pairing's short link. A browser that opens the short link counts as sent to the portal by the hub, so
 * the key must not be derived from the nonce, which anybody can read in the portal's own link. It is derived from the
 * pairing's id, which only the installer's page and the control socket show while the pairing is open. So nothing is
 * stored for it, and a link that was scanned before a restart works after it.
 * @param id of the pairing: a version 4 UUID
 */
export function shortLinkKey(id: string): string {
  return sha256(`latchkey short link ${id}`).slice(0, KEY_LENGTH);
}
