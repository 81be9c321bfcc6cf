import { createPrivateKey, X509Certificate } from 'node:crypto';
import * as v from 'valibot';
import type { BrokerStore } from '../broker/ports.ts';
import { instantSchema } from '../system/instant-schema.ts';
import { type Authority, spkiFingerprint } from '../system/x509/certificates.ts';

/** The store's settings that hold the CA. */
const KEY_SETTING = 'ca_key';
const CERTIFICATE_SETTING = 'ca_certificate';
const OLD_SETTING = 'ca_old';

const OldAuthorityEntry = v.nullable(
  v.object({
    /** The pin of the CA that replaced it. If a restore has brought another CA, this entry is ignored. */
    for: v.string(),
    certificate: v.string(),
    cross: v.string(),
    since: instantSchema,
    keep: v.number(),
    until: v.nullable(v.number()),
  }),
);

/** The old CA, and how long it is served; null if there is none. */
export type OldAuthorityEntry = v.InferOutput<typeof OldAuthorityEntry>;

/** The CA in the store. */
export interface StoredAuthority {
  readonly authority: Authority;
  readonly old: OldAuthorityEntry;
}

/** Reads and writes the CA in the store. */
export class AuthoritySettings {
  readonly #store: Pick<BrokerStore, 'settings' | 'saveSettings' | 'replaceSettings' | 'site'>;
  /** As they were last read or written. */
  #stored: Readonly<Record<string, string | null>> = {};

  constructor(store: Pick<BrokerStore, 'settings' | 'saveSettings' | 'replaceSettings' | 'site'>) {
    this.#store = store;
  }

  /** @returns null if there is no CA, or its parts do not belong together */
  async read(): Promise<StoredAuthority | null> {
    const names = [KEY_SETTING, CERTIFICATE_SETTING, OLD_SETTING];
    const found = await this.#store.settings(names);
    this.#stored = Object.fromEntries(names.map((name) => [name, found.get(name) ?? null]));
    const [key, certificate, old] = names.map((name) => found.get(name));
    if (key === undefined || certificate === undefined || !keyMatchesCertificate(key, certificate)) return null;
    const entry = parseOldAuthority(old);
    return { authority: { key, certificate }, old: entry?.for === spkiFingerprint(certificate) ? entry : null };
  }

  /**
   * Stores the first CA, after {@link read} has found none.
   * @returns the stored CA: another one if another hub of the site was faster
   * @throws Failure as the store
   */
  async create(authority: Authority): Promise<StoredAuthority> {
    const { key, certificate } = authority;
    if (await this.#write({ [KEY_SETTING]: key, [CERTIFICATE_SETTING]: certificate })) return { authority, old: null };
    return (await this.read()) ?? this.create(authority);
  }

  /**
   * Replaces the CA, in one write.
   * @returns false if another hub of the site has changed the CA since it was read
   * @throws Failure as the store
   */
  replace({ authority, old }: StoredAuthority): Promise<boolean> {
    const { key, certificate } = authority;
    return this.#write({
      [KEY_SETTING]: key,
      [CERTIFICATE_SETTING]: certificate,
      [OLD_SETTING]: JSON.stringify(old),
    });
  }

  /** Replaces only what is known about the old CA; otherwise as {@link replace}. */
  replaceOld(old: OldAuthorityEntry): Promise<boolean> {
    return this.#write({ [OLD_SETTING]: JSON.stringify(old) });
  }

  async #write(values: Readonly<Record<string, string>>): Promise<boolean> {
    // A write that has failed may be in a store on a card all the same, which nobody else changes.
    if (this.#store.site === null) await this.#store.saveSettings(values);
    else if (!(await this.#store.replaceSettings(this.#stored, values))) return false;
    this.#stored = { ...this.#stored, ...values };
    return true;
  }
}

/** After damage to the store one of them may come from a snapshot that was made before a rotation. */
function keyMatchesCertificate(key: string, certificate: string): boolean {
  try {
    return new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key));
  } catch {
    return false;
  }
}

function parseOldAuthority(text: string | undefined): OldAuthorityEntry {
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), OldAuthorityEntry), text);
  return parsed.success ? parsed.output : null;
}
