import { X509Certificate } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import * as v from 'valibot';
import type { Environment } from '../broker/ports.ts';
import type { ReferenceClock } from '../broker/time/reference-clock.ts';
import { confirmedTimeAt } from '../core/clock.ts';
import { messageOf } from '../core/failure.ts';
import type { Log } from '../core/log.ts';
import { LEAF_SETTING } from '../core/site.ts';
import type { Store } from '../core/store.ts';
import type { Leaf } from '../system/x509/certificates.ts';
import { issueLeafInThread } from '../system/x509/issue-in-thread.ts';
import type { HubAuthority } from './authority.ts';
import type { ServedCertificate } from './custom-certificate.ts';

/** What {@link loadOrIssueLeaf} needs. */
export interface IssuedLeafContext {
  readonly environment: Pick<Environment, 'clock' | 'log'>;
  /** The confirmed clock. */
  readonly portalClock: Pick<ReferenceClock, 'confirmed'>;
  readonly identity: { readonly ca: HubAuthority };
  /** Where the leaf is cached; `site` is left out, or null, if the CA is this hub's alone. */
  readonly store: Pick<Store, 'settings'>;
  /** The hub's own DNS names. */
  readonly names: readonly string[];
  /** The current LAN addresses. */
  addresses(): readonly string[];
}

/** What a cached leaf was issued for. A leaf with another key is not used. */
interface LeafCacheKey {
  /** The pin of the CA that issues it. */
  readonly issuer: string;
  /** The pin of the old CA that the leaf must chain to as well; null for none. */
  readonly old: string | null;
  readonly names: readonly string[];
  readonly addresses: readonly string[];
}

/** A leaf is replaced when it expires in less than this, in ms. */
export const RENEW_BEFORE_EXPIRY = 365 * 86_400_000;

const CachedLeaf = v.object({
  for: v.object({
    issuer: v.string(),
    old: v.nullable(v.string()),
    names: v.array(v.string()),
    addresses: v.array(v.string()),
  }),
  leaf: v.object({ certificate: v.string(), key: v.string(), notAfter: v.number() }),
});

/**
 * The leaf of the hub's own CA. The cached one is used if a new one would have the same content, because the code that
 * issues certificates is large to load.
 * @param isServing whether the hub serves appliances meanwhile; a new leaf then takes a little longer
 */
export async function loadOrIssueLeaf(context: IssuedLeafContext, isServing: boolean): Promise<ServedCertificate> {
  const { identity, names, addresses, portalClock, environment, store } = context;
  const { authority, fingerprint, old } = identity.ca;
  const wall = environment.clock.now();
  const now = confirmedTimeAt(portalClock.confirmed, wall) ?? wall.wall;
  const lanAddresses = addresses();
  const wanted = {
    issuer: fingerprint,
    old: old?.fingerprint ?? null,
    names,
    addresses: [...new Set(['127.0.0.1', '::1', ...lanAddresses])],
  };
  // Without a network nobody connects, and when it is back, appliances may connect at once with the former address.
  let leaf = await loadCachedLeaf(store, wanted, lanAddresses.length === 0);
  if (leaf === null || leaf.notAfter - now < RENEW_BEFORE_EXPIRY) {
    const issueLeaf = isServing ? issueLeafInThread : (await import('../system/x509/issuing.ts')).issueLeaf;
    const issued = await issueLeaf(authority, { ...wanted, now, ...(old === null ? {} : { chain: old.crossChain }) });
    const advice = old === null ? ROTATION_ADVICE : WAITING_ADVICE;
    warnAboutExcludedNames(issued.omitted, advice, environment.log);
    leaf = issued;
    await store.settings.save({ [LEAF_SETTING]: JSON.stringify({ for: wanted, leaf }) }).catch((error: unknown) => {
      environment.log.debug('certificate_not_stored', {
        error: messageOf(error),
      });
    });
  }
  const { certificate, key, notAfter } = leaf;
  const anchor = { certificate: authority.certificate, fingerprint };
  const notBefore = new X509Certificate(certificate).validFromDate.getTime();
  return { pem: { certificate, key }, names, anchor, notBefore, notAfter };
}

/**
 * The cached leaf; null if it was issued for anything else. The store seals its key, like the CA's.
 * @param anyAddresses whether it may be for other addresses
 */
async function loadCachedLeaf(
  store: Pick<Store, 'settings'>,
  wanted: LeafCacheKey,
  anyAddresses: boolean,
): Promise<Leaf | null> {
  const text = await store.settings.get(LEAF_SETTING);
  if (text === null) return null;
  const cached = v.safeParse(v.pipe(v.string(), v.parseJson(), CachedLeaf), text);
  if (!cached.success) return null;
  const { for: key, leaf } = cached.output;
  return isDeepStrictEqual(anyAddresses ? { ...key, addresses: wanted.addresses } : key, wanted) ? leaf : null;
}

const WAITING_ADVICE = 'nothing: the certificate will include them when the old CA ends';
const ROTATION_ADVICE =
  'nothing, if appliances use the hub\'s address or its name in .local; otherwise "latchkey ca --rotate" creates a CA that permits the names of the hub on which it runs';

/** Warns about names and addresses of the hub that the certificate lacks, because a CA does not permit them. */
function warnAboutExcludedNames(omitted: readonly string[], advice: string, log: Log): void {
  if (omitted.length > 0) log.warn('certificate_names_missing', { names: omitted.join(', '), what_to_do: advice });
}
