import { createPrivateKey, X509Certificate } from 'node:crypto';
import * as v from 'valibot';
import type { BrokerStore } from '../broker/ports.ts';
import { type ConfirmedTime, elapsed, type Instant, timesAt } from '../core/clock.ts';
import { Failure } from '../core/failure.ts';
import { instantSchema } from '../system/instant-schema.ts';
import { SerialQueue } from '../system/serial-queue.ts';
import { type Authority, type PermittedNames, spkiFingerprint } from '../system/x509/certificates.ts';
import { createSuccessorInThread } from '../system/x509/issue-in-thread.ts';

/** The old CA, served while some appliances trust only this one. Its private key has been deleted. */
interface OldAuthority {
  /** PEM. */
  readonly certificate: string;
  readonly fingerprint: string;
  /** Certificates to append to a leaf of the current CA so that it chains to this one, PEM. */
  readonly crossChain: string;
  /** When this ends, by the confirmed clock in ms since 1970; null while the clock is not confirmed. */
  readonly servedUntil: number | null;
}

type AuthorityStore = ConstructorParameters<typeof AuthoritySettings>[0];

/** The CA of the hub or of its site, which a rotation may replace while the hub runs. */
export class HubAuthority {
  readonly #store: AuthorityStore;
  #settings: AuthoritySettings;
  #authority: Authority;
  #old: OldAuthorityEntry;
  readonly #queue = new SerialQueue();

  private constructor(store: AuthorityStore, settings: AuthoritySettings, { authority, old }: StoredAuthority) {
    this.#store = store;
    this.#settings = settings;
    this.#authority = authority;
    this.#old = old;
  }

  /**
   * Loads the CA from the store, or creates it at the first start.
   * @param permitted the names and networks that a new CA may issue certificates for
   */
  static async load(store: AuthorityStore, permitted: () => PermittedNames): Promise<HubAuthority> {
    const settings = new AuthoritySettings(store);
    const stored = await settings.read();
    if (stored !== null) return new HubAuthority(store, settings, stored);
    const { createAuthority } = await import('../system/x509/issuing.ts');
    const authority = await createAuthority(undefined, permitted());
    return new HubAuthority(store, settings, await settings.create(authority));
  }

  get authority(): Authority {
    return this.#authority;
  }

  /** The pin of the CA: base64url SHA-256 of its public key. */
  get fingerprint(): string {
    return spkiFingerprint(this.#authority.certificate);
  }

  /** The old CA; null if appliances that trust only that one are no longer served. */
  get old(): OldAuthority | null {
    if (this.#old === null) return null;
    const { certificate, cross, until } = this.#old;
    return {
      certificate,
      fingerprint: spkiFingerprint(certificate),
      crossChain: cross + certificate,
      servedUntil: until,
    };
  }

  /**
   * Replaces the CA with a new one, in one write. The old private key is not kept.
   * @param keep how long appliances that trust only the old CA are served, in ms; 0 for not at all
   * @throws Failure `not_allowed` if there already is an old CA, which would have to be dropped, or another hub of the
   *   site has changed the CA; `store_unwritable`. Nothing has changed then.
   */
  rotate(keep: number, permitted: PermittedNames, now: Instant, readings: readonly ConfirmedTime[]): Promise<void> {
    return this.#queue.run(async () => {
      if (this.old !== null && keep > 0) throw oldStillServed(this.old);
      const { certificate } = this.#authority;
      const { authority, crossCertificate: cross } = await createSuccessorInThread(this.#authority, permitted);
      const old =
        keep === 0
          ? null
          : { ...servingPeriod(keep, now, readings), for: spkiFingerprint(authority.certificate), certificate, cross };
      if (!(await this.#settings.replace({ authority, old }))) throw changedElsewhere();
      this.#authority = authority;
      this.#old = old;
    });
  }

  /**
   * Sets how long the old CA is kept, counted from now.
   * @param keep in ms; 0 ends it
   * @throws Failure `not_allowed` if there is no old CA, or another hub of the site has changed the CA;
   * `store_unwritable`
   */
  setOldServingTime(keep: number, now: Instant, readings: readonly ConfirmedTime[]): Promise<void> {
    return this.#queue.run(async () => {
      const old = this.#old;
      if (old === null)
        throw new Failure('not_allowed', 'there is no old CA to keep or end: one exists only after a rotation');
      const isSaved = await this.#saveOld(keep === 0 ? null : { ...old, ...servingPeriod(keep, now, readings) });
      if (!isSaved) throw changedElsewhere();
    });
  }

  /**
   * Ends the old CA if its time is over: by all readings of the true time, because one response of a portal may have a
   * wrong date, and by the boot clock. If its end was unknown because the clock was not confirmed, sets it now.
   * @returns whether the old CA has ended
   * @throws Failure `store_unwritable`
   */
  retireOldIfDue(readings: readonly ConfirmedTime[], now: Instant): Promise<boolean> {
    return this.#queue.run(async () => {
      const times = timesAt(readings, now);
      const old = this.#old;
      if (old === null || times.length === 0) return false;
      // Null after another boot; the time that passed until then is unknown and counts as 0.
      const served = elapsed(old.since, now);
      const until = old.until ?? Math.max(...times) + old.keep - (served ?? 0);
      if (until > Math.min(...times) || (served !== null && served < old.keep)) {
        if (old.until === null) await this.#saveOld({ ...old, until });
        return false;
      }
      return this.#saveOld(null);
    });
  }

  /**
   * Looks at the CA of the site again, which another hub may have changed, and takes over how long the old one is
   * served.
   * @returns whether this hub serves another CA, or another old one, so that it must start again
   * @throws Failure as the store
   */
  isReplaced(): Promise<boolean> {
    return this.#queue.run(async () => {
      // Separate settings: a hub that must start again can't change a CA that it does not serve.
      const settings = new AuthoritySettings(this.#store);
      const stored = await settings.read();
      if (stored === null) return false;
      const { authority, old } = stored;
      const isSame = (one: { certificate: string } | null, other: { certificate: string } | null) =>
        one?.certificate === other?.certificate;
      if (!isSame(authority, this.#authority) || !isSame(old, this.#old)) return true;
      this.#settings = settings;
      this.#old = old;
      return false;
    });
  }

  /** @returns false if another hub of the site has changed the CA */
  async #saveOld(old: OldAuthorityEntry): Promise<boolean> {
    if (!(await this.#settings.replaceOld(old))) return false;
    this.#old = old;
    return true;
  }
}

/** @param readings of the true time: if they differ, the latest counts */
function servingPeriod(keep: number, now: Instant, readings: readonly ConfirmedTime[]) {
  const times = timesAt(readings, now);
  return { since: now, keep, until: times.length === 0 ? null : Math.max(...times) + keep };
}

function changedElsewhere(): Failure {
  return new Failure(
    'not_allowed',
    'another hub of the site has just changed the CA: see "latchkey ca", and repeat the command only if it is still needed',
  );
}

function oldStillServed({ fingerprint, servedUntil: until }: OldAuthority): Failure {
  const end = until === null ? 'the clock is confirmed' : new Date(until).toISOString();
  return new Failure(
    'not_allowed',
    `only one old CA can be kept at a time, and appliances that trust the old CA (${fingerprint}) are served until ${end}: end that first ("latchkey ca --keep-old 0"), or rotate with --keep-old 0, which ends both`,
  );
}

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
type OldAuthorityEntry = v.InferOutput<typeof OldAuthorityEntry>;

/** The CA in the store. */
interface StoredAuthority {
  readonly authority: Authority;
  readonly old: OldAuthorityEntry;
}

/** Reads and writes the CA in the store. */
class AuthoritySettings {
  readonly #store: Pick<BrokerStore, 'settings'>;
  /** As they were last read or written, and as writes that have failed may have left them all the same. */
  #possible: readonly Readonly<Record<string, string | null>>[] = [{}];

  constructor(store: Pick<BrokerStore, 'settings'>) {
    this.#store = store;
  }

  /** @returns null if there is no CA, or its parts do not belong together */
  async read(): Promise<StoredAuthority | null> {
    const names = [KEY_SETTING, CERTIFICATE_SETTING, OLD_SETTING];
    const found = await this.#store.settings.getAll(names);
    this.#possible = [Object.fromEntries(names.map((name) => [name, found.get(name) ?? null]))];
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
    const before = this.#possible;
    const wanted = { ...before[0], ...values };
    this.#possible = [...before, wanted];
    for (const expected of before) {
      if (!(await this.#store.settings.replace(expected, values))) continue;
      this.#possible = [wanted];
      return true;
    }
    this.#possible = before;
    return false;
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
