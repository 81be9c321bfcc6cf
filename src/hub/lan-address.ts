import { readLan } from '../mdns/lan-watch.ts';

/**
 * The hub's address on the home network as it is now; null while there is none.
 * @param setting `lan.address`
 */
export function lanAddress(setting: string): string | null {
  return readLan(setting).address?.address ?? null;
}
