import { isDeepStrictEqual } from 'node:util';
import * as v from 'valibot';
import type { Store } from '../core/store.ts';
import type { Leaf } from '../system/x509/certificates.ts';

/** What a leaf is issued for. */
export interface LeafPurpose {
  /** The pin of the CA that issues it. */
  readonly issuer: string;
  /** The pin of the CA before it that it is to lead to as well; null for none. */
  readonly old: string | null;
  readonly names: readonly string[];
  readonly addresses: readonly string[];
}

const SETTING = 'leaf';

const KeptLeaf = v.object({
  for: v.object({
    issuer: v.string(),
    old: v.nullable(v.string()),
    names: v.array(v.string()),
    addresses: v.array(v.string()),
  }),
  leaf: v.object({ certificate: v.string(), key: v.string(), notAfter: v.number() }),
});

/** The leaf that was issued last, if it was for just this; its key is sealed in the store, as the CA's is. */
export async function keptLeaf(store: Pick<Store, 'setting'>, wanted: LeafPurpose): Promise<Leaf | null> {
  const text = await store.setting(SETTING);
  if (text === null) return null;
  const kept = v.safeParse(v.pipe(v.string(), v.parseJson(), KeptLeaf), text);
  return kept.success && isDeepStrictEqual(kept.output.for, wanted) ? kept.output.leaf : null;
}

/** Keeps a leaf in place of the one before. */
export async function keepLeaf(store: Pick<Store, 'saveSetting'>, purpose: LeafPurpose, leaf: Leaf): Promise<void> {
  await store.saveSetting(SETTING, JSON.stringify({ for: purpose, leaf }));
}
