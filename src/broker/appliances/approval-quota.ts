import { isIPv4 } from 'node:net';
import type { Appliance, RegistrantAddress } from '../../core/appliances/appliance.ts';
import { type Admission, admit } from '../../system/limits/fair-share.ts';

/** One that waits for an installer's approval. */
export interface Waiting {
  readonly appliance: Appliance;
  /** Milliseconds for which it still may. */
  readonly left: number;
}

/** Appliances that may wait at a time over each of IPv4 and IPv6: more than a home network (/24) has IPv4 addresses. */
const MAX_PER_PROTOCOL = 300;
/** The same, of one device. */
const MAX_PER_DEVICE = 5;
/** The same, of one network interface, or of one IPv6 network: a device may take any address there. */
const MAX_PER_NETWORK = 15;

/**
 * Whether one more may wait for approval. If there are too many, the oldest of the device that has most gives way to a device
 * that has less. So each IPv4 address that has none waiting gets one, and over IPv6 each link-layer address, whatever number
 * of IPv6 addresses another device takes; if link-layer addresses are not known, networks are compared, and then the addresses of one.
 */
export function admitRegistrant(from: RegistrantAddress, waiting: readonly Waiting[]): Admission<Waiting> {
  const [protocol = '', ...shares] = keysOf(from);
  const quotas = shares.map((key, index) => ({
    key,
    limit: index === shares.length - 1 ? MAX_PER_DEVICE : MAX_PER_NETWORK,
  }));
  const oldestFirst = waiting.toSorted((one, other) => one.left - other.left);
  const holders = oldestFirst.map((each) => ({ ...each, keys: keysOf(each.appliance.registeredFrom) }));
  return admit([{ key: protocol, limit: MAX_PER_PROTOCOL }, ...quotas], holders);
}

/** Those of whom the store does not say where they registered from count to nobody. */
function keysOf(from: RegistrantAddress | undefined): readonly string[] {
  return from === undefined ? [] : [isIPv4(from.address) ? 'IPv4' : 'IPv6', ...from.shares];
}
