import { createPrivateKey, X509Certificate } from 'node:crypto';
import * as v from 'valibot';
import type { BrokerStore } from '../broker/ports.ts';
import { instantSchema } from '../system/instant-schema.ts';
import { type Authority, spkiFingerprint } from '../system/x509/certificates.ts';

/** The store's settings that hold the CA. */
const KEY_SETTING = 'ca_key';
const CERTIFICATE_SETTING = 'ca_certificate';
const OLD_SETTING = 'ca_old';
/**
 * On a site: the CA as it is since its first rotation, in one setting, so that hubs that change it at once can't mix
 * parts of two CAs.
 */
const SITE_CA_SETTING = 'ca_of_site';

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

const SiteAuthorityEntry = v.object({
  /** The pin of the CA in the other settings. If a restore has brought another CA, this entry is ignored. */
  replaces: v.string(),
  key: v.string(),
  certificate: v.string(),
  old: OldAuthorityEntry,
});

/** The old CA, and how long it is served; null if there is none. */
export type OldAuthorityEntry = v.InferOutput<typeof OldAuthorityEntry>;

/** The CA in the store. */
export interface StoredAuthority {
  readonly authority: Authority;
  readonly old: OldAuthorityEntry;
}

type SettingsStore = Pick<
  BrokerStore,
  'setting' | 'saveSetting' | 'saveSettings' | 'createSettings' | 'changeSetting' | 'site'
>;

/** Reads and writes the CA in the store. */
export class AuthoritySettings {
  readonly #store: SettingsStore;
  /** The pin of the CA in the settings that a hub without a site uses. */
  #basePin = '';
  /** What {@link SITE_CA_SETTING} was when it was last read or written. */
  #siteEntry: string | null = null;

  constructor(store: SettingsStore) {
    this.#store = store;
  }

  /** @returns null if there is no CA, or its parts do not belong together */
  async read(): Promise<StoredAuthority | null> {
    const key = await this.#store.setting(KEY_SETTING);
    const certificate = await this.#store.setting(CERTIFICATE_SETTING);
    if (certificate === null) return null;
    this.#basePin = pinOf(certificate) ?? '';
    this.#siteEntry = await this.#store.setting(SITE_CA_SETTING);
    const site = parse(SiteAuthorityEntry, this.#siteEntry);
    if (site !== null && site.replaces === this.#basePin && keyMatchesCertificate(site.key, site.certificate)) {
      return withValidOld({ key: site.key, certificate: site.certificate }, site.old);
    }
    if (key === null || !keyMatchesCertificate(key, certificate)) return null;
    return withValidOld({ key, certificate }, parse(OldAuthorityEntry, await this.#store.setting(OLD_SETTING)));
  }

  /**
   * Stores the first CA.
   * @returns the stored CA: another one if another hub of the site was faster
   * @throws Failure as the store
   */
  async create(authority: Authority): Promise<StoredAuthority> {
    const values = { [KEY_SETTING]: authority.key, [CERTIFICATE_SETTING]: authority.certificate };
    if (!(await this.#store.createSettings(values))) {
      const other = await this.read();
      if (other !== null) return other;
      // What is stored is damaged.
      await this.#store.saveSettings(values);
    }
    this.#basePin = spkiFingerprint(authority.certificate);
    return { authority, old: null };
  }

  /**
   * Replaces the CA, in one write.
   * @returns false if another hub of the site has changed the CA since it was read
   * @throws Failure as the store
   */
  async replace({ authority, old }: StoredAuthority): Promise<boolean> {
    if (this.#store.site !== null) return this.#replaceForSite({ authority, old });
    await this.#store.saveSettings({
      [KEY_SETTING]: authority.key,
      [CERTIFICATE_SETTING]: authority.certificate,
      [OLD_SETTING]: JSON.stringify(old),
      // From the backup of a site.
      ...(this.#siteEntry === null ? {} : { [SITE_CA_SETTING]: 'null' }),
    });
    return true;
  }

  /** Replaces only what is known about the old CA; otherwise as {@link replace}. */
  async replaceOld(current: StoredAuthority): Promise<boolean> {
    const isInOneSetting = this.#store.site !== null || parse(SiteAuthorityEntry, this.#siteEntry) !== null;
    if (isInOneSetting) return this.replace(current);
    await this.#store.saveSetting(OLD_SETTING, JSON.stringify(current.old));
    return true;
  }

  async #replaceForSite({ authority, old }: StoredAuthority): Promise<boolean> {
    const before = this.#siteEntry;
    const entry = JSON.stringify({ replaces: this.#basePin, ...authority, old });
    const written = await this.#store.changeSetting(SITE_CA_SETTING, (stored) =>
      stored === before ? entry : (stored ?? 'null'),
    );
    if (written !== entry) return false;
    this.#siteEntry = entry;
    await this.#removeBaseKey().catch(() => undefined);
    return true;
  }

  /** The private key of a CA that was replaced is not kept. If this fails, the next change tries it again. */
  async #removeBaseKey(): Promise<void> {
    if ((await this.#store.setting(KEY_SETTING)) !== '') await this.#store.saveSetting(KEY_SETTING, '');
  }
}

function withValidOld(authority: Authority, old: OldAuthorityEntry): StoredAuthority {
  return { authority, old: old?.for === spkiFingerprint(authority.certificate) ? old : null };
}

/** After damage to the store one of them may come from a snapshot that was made before a rotation. */
function keyMatchesCertificate(key: string, certificate: string): boolean {
  try {
    return new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key));
  } catch {
    return false;
  }
}

function pinOf(certificate: string): string | null {
  try {
    return spkiFingerprint(certificate);
  } catch {
    return null;
  }
}

function parse<Schema extends v.GenericSchema>(schema: Schema, text: string | null): v.InferOutput<Schema> | null {
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), schema), text);
  return parsed.success ? parsed.output : null;
}
