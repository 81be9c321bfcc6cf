import type { PairingRun } from '../broker/pairing-run.ts';
import type { HubStatus } from '../core/administration.ts';

/**
 * Where a phone in the home network goes on to a pairing's link: short enough for a QR code on a small terminal.
 * @returns null while the hub has no address there
 */
export function shortLink(
  { shortKey }: Pick<PairingRun, 'shortKey'>,
  { address, http_port: port }: Pick<HubStatus, 'address' | 'http_port'>,
): string | null {
  if (address === null) return null;
  return `http://${address.includes(':') ? `[${address}]` : address}:${port}/l/${shortKey}`;
}
