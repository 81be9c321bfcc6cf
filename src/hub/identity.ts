import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { Store } from '../core/store.ts';
import { type Authority, pin } from '../system/certificates.ts';

/** What makes a hub this hub, and stays for its life. */
export interface Identity {
  /** A DNS label, such as `latchkey-5f0c9a1e`: the host name over mDNS is `<id>.local`. */
  readonly id: string;
  readonly authority: Authority;
  /** The pin of the CA: base64url SHA-256 of its public key. */
  readonly fingerprint: string;
}

/** Reads the hub's id and CA from the store, or makes them at the first start. */
export async function loadIdentity(store: Store): Promise<Identity> {
  const id = await keep(store, 'hub_id', async () => `latchkey-${randomBytes(4).toString('hex')}`);
  const key = await store.setting('ca_key');
  const certificate = await store.setting('ca_certificate');
  if (key !== null && certificate !== null)
    return { id, authority: { key, certificate }, fingerprint: pin(certificate) };
  const { createAuthority } = await import('../system/certificate-issuing.ts');
  const authority = await createAuthority();
  await store.saveSetting('ca_key', authority.key);
  await store.saveSetting('ca_certificate', authority.certificate);
  return { id, authority, fingerprint: pin(authority.certificate) };
}

/** The DNS names that the hub answers to, in lower case. */
export function hubNames(id: string): string[] {
  const host = hostname().toLowerCase();
  const label = host.split('.')[0] ?? host;
  return [...new Set([`${id}.local`, host, label, `${label}.local`, 'localhost'])].filter((name) => name !== '');
}

async function keep(store: Store, name: string, make: () => Promise<string>): Promise<string> {
  const kept = await store.setting(name);
  if (kept !== null) return kept;
  const made = await make();
  await store.saveSetting(name, made);
  return made;
}
