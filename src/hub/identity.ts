import type { BrokerStore } from '../broker/ports.ts';
import { HubAuthority } from '../certificates/authority.ts';
import { permittedNames } from '../certificates/permitted-names.ts';
import { hostNames } from '../mdns/records/records.ts';
import { machineName } from '../system/container.ts';
import { sha256 } from '../system/secret-hash.ts';
import { createHubId } from './site/hub-id.ts';

/** The permanent identity of a hub. */
export interface Identity {
  /** A DNS label, such as `latchkey-5f0c9a1e`: the host name over mDNS is `<id>.local`. It never changes. */
  readonly id: string;
  readonly ca: HubAuthority;
}

/**
 * Loads the hub's id and CA from the store, or creates them at the first start. A hub of a site has its id before it opens the store.
 * @param addresses those that the hub has or is configured to have
 */
export async function loadIdentity(store: BrokerStore, addresses: () => readonly string[]): Promise<Identity> {
  const id = await loadOrCreateId(store);
  return { id, ca: await HubAuthority.load(store, () => permittedNames(hubHostNames(id), addresses())) };
}

/** The DNS names under which the hub can be requested, in lower case. */
export function hubHostNames(id: string): string[] {
  const host = machineName().toLowerCase();
  const label = host.split('.')[0] ?? host;
  return [...new Set([...hostNames(id), host, label, `${label}.local`, 'localhost'])].filter((name) => name !== '');
}

async function loadOrCreateId(store: BrokerStore): Promise<string> {
  const stored = await store.settings.get('hub_id');
  if (stored !== null) return stored;
  const created = createHubId();
  await store.settings.save({ hub_id: created });
  return created;
}

/**
 * Spreads the refreshes of all grants of the fleet: evenly distributed from 0 to 1, and always the same for a grant.
 */
export function jitterOffsetFor(hubId: string, appliance: string): number {
  return Buffer.from(sha256(`${hubId}/${appliance}`), 'base64url').readUInt32BE() / 2 ** 32;
}
