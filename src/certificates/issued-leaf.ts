import { isDeepStrictEqual } from 'node:util';
import * as v from 'valibot';
import type { Environment } from '../broker/environment.ts';
import type { ReferenceClock } from '../broker/time/reference-clock.ts';
import { confirmedTimeAt } from '../core/clock.ts';
import { messageOf } from '../core/failure.ts';
import type { Log } from '../core/log.ts';
import type { Store } from '../core/store.ts';
import type { Leaf } from '../system/x509/certificates.ts';
import type { HubAuthority } from './authority.ts';
import type { ServedCertificate } from './custom-certificate.ts';

/** What a leaf is issued from. */
export interface IssuedLeafContext {
  readonly environment: Pick<Environment, 'clock' | 'log'>;
  /** Knows the true time, where something has told it. */
  readonly portalClock: Pick<ReferenceClock, 'confirmed'>;
  readonly identity: { readonly ca: HubAuthority };
  /** Where the leaf is cached. */
  readonly store: Pick<Store, 'setting' | 'saveSetting'>;
  /** The hub's own DNS names. */
  readonly names: readonly string[];
  /** The LAN addresses as they are now. */
  addresses(): readonly string[];
}

/** What a leaf is issued for. */
interface LeafCacheKey {
  /** The pin of the CA that issues it. */
  readonly issuer: string;
  /** The pin of the CA before it that it is to lead to as well; null for none. */
  readonly old: string | null;
  readonly names: readonly string[];
  readonly addresses: readonly string[];
}

/** A leaf is issued anew when it has less than this left, in ms. */
export const RENEW_BEFORE_EXPIRY = 365 * 86_400_000;

const LEAF_SETTING = 'leaf';

const CachedLeaf = v.object({
  for: v.object({
    issuer: v.string(),
    old: v.nullable(v.string()),
    names: v.array(v.string()),
    addresses: v.array(v.string()),
  }),
  leaf: v.object({ certificate: v.string(), key: v.string(), notAfter: v.number() }),
});

/** The certificate of the hub's own CA: the one that was issued before if another one would say the same, as issuing loads much. */
export async function loadOrIssueLeaf(context: IssuedLeafContext): Promise<ServedCertificate> {
  const { identity, names, addresses, portalClock, environment, store } = context;
  const { authority, fingerprint, old } = identity.ca;
  const wall = environment.clock.now();
  const now = confirmedTimeAt(portalClock.confirmed, wall) ?? wall.wall;
  const wanted = {
    issuer: fingerprint,
    old: old?.fingerprint ?? null,
    names,
    addresses: [...new Set(['127.0.0.1', '::1', ...addresses()])],
  };
  let leaf = await loadCachedLeaf(store, wanted);
  if (leaf === null || leaf.notAfter - now < RENEW_BEFORE_EXPIRY) {
    const { issueLeaf } = await import('../system/x509/issuing.ts');
    const issued = await issueLeaf(authority, { ...wanted, now, ...(old === null ? {} : { chain: old.crossChain }) });
    warnAboutExcludedNames(issued.omitted, old !== null, environment.log);
    leaf = issued;
    await store.saveSetting(LEAF_SETTING, JSON.stringify({ for: wanted, leaf })).catch((error: unknown) => {
      environment.log.debug('certificate_not_stored', {
        error: messageOf(error),
      });
    });
  }
  const { certificate, key, notAfter } = leaf;
  const anchor = { certificate: authority.certificate, fingerprint };
  return { pem: { certificate, key }, names, anchor, notAfter };
}

/** The leaf that was issued last, if it was for just this; its key is sealed in the store, as the CA's is. */
async function loadCachedLeaf(store: Pick<Store, 'setting'>, wanted: LeafCacheKey): Promise<Leaf | null> {
  const text = await store.setting(LEAF_SETTING);
  if (text === null) return null;
  const cached = v.safeParse(v.pipe(v.string(), v.parseJson(), CachedLeaf), text);
  return cached.success && isDeepStrictEqual(cached.output.for, wanted) ? cached.output.leaf : null;
}

/** Says which of the hub's names and addresses its certificate is not for, because a CA is not for them. */
function warnAboutExcludedNames(leftOut: readonly string[], isRotating: boolean, log: Log): void {
  if (leftOut.length === 0) return;
  log.warn('certificate_names_missing', {
    names: leftOut.join(', '),
    what_to_do: isRotating
      ? "nothing: it will be for them when the old CA's time is over"
      : 'the CA was made before the hub had them: "latchkey ca --rotate" makes one that is for them',
  });
}
