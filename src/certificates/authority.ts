import { createPrivateKey, X509Certificate } from 'node:crypto';
import * as v from 'valibot';
import { type ConfirmedTime, elapsed, type Instant, timesAt } from '../core/clock.ts';
import { Failure } from '../core/failure.ts';
import type { Store } from '../core/store.ts';
import { instantSchema } from '../system/instant-schema.ts';
import { type Authority, type PermittedNames, spkiFingerprint } from '../system/x509/certificates.ts';
import { createSuccessorInThread } from '../system/x509/issue-in-thread.ts';

/** The store's settings that hold the CA. */
const KEY_SETTING = 'ca_key';
const CERTIFICATE_SETTING = 'ca_certificate';
const OLD_SETTING = 'ca_old';

const StoredOldAuthority = v.nullable(
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
type StoredOldAuthority = v.InferOutput<typeof StoredOldAuthority>;

/** The old CA, served while some appliances trust only this one. Its private key has been deleted. */
export interface OldAuthority {
  /** PEM. */
  readonly certificate: string;
  readonly fingerprint: string;
  /** Certificates to append to a leaf of the current CA so that it chains to this one, PEM. */
  readonly crossChain: string;
  /** When this ends, by the confirmed clock in ms since 1970; null while the clock is not confirmed. */
  readonly servedUntil: number | null;
}

type AuthorityStore = Pick<Store, 'setting' | 'saveSetting' | 'saveSettings'>;

/** The hub's CA, which a rotation may replace while the hub runs. */
export class HubAuthority {
  readonly #store: AuthorityStore;
  #authority: Authority;
  #old: StoredOldAuthority;
  #lastTask: Promise<unknown> = Promise.resolve();

  private constructor(store: AuthorityStore, authority: Authority, old: StoredOldAuthority) {
    this.#store = store;
    this.#authority = authority;
    this.#old = old;
  }

  /**
   * Loads the CA from the store, or creates it at the first start.
   * @param permitted the names and networks that a new CA may issue certificates for
   */
  static async load(store: AuthorityStore, permitted: () => PermittedNames): Promise<HubAuthority> {
    const [key, certificate] = [await store.setting(KEY_SETTING), await store.setting(CERTIFICATE_SETTING)];
    if (key !== null && certificate !== null && keyMatchesCertificate(key, certificate)) {
      const old = parseOldAuthority(await store.setting(OLD_SETTING));
      return new HubAuthority(store, { key, certificate }, old?.for === spkiFingerprint(certificate) ? old : null);
    }
    const { createAuthority } = await import('../system/x509/issuing.ts');
    const authority = await createAuthority(undefined, permitted());
    await store.saveSettings({ [KEY_SETTING]: authority.key, [CERTIFICATE_SETTING]: authority.certificate });
    return new HubAuthority(store, authority, null);
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
   * @throws Failure `not_allowed` if there already is an old CA, which would have to be dropped; `store_unwritable`.
   *   Nothing has changed then.
   */
  rotate(keep: number, permitted: PermittedNames, now: Instant, readings: readonly ConfirmedTime[]): Promise<void> {
    return this.#runExclusive(async () => {
      if (this.old !== null && keep > 0) throw oldStillServed(this.old);
      const { certificate } = this.#authority;
      const { authority, crossCertificate: cross } = await createSuccessorInThread(this.#authority, permitted);
      const old =
        keep === 0
          ? null
          : { ...servingPeriod(keep, now, readings), for: spkiFingerprint(authority.certificate), certificate, cross };
      await this.#store.saveSettings({
        [KEY_SETTING]: authority.key,
        [CERTIFICATE_SETTING]: authority.certificate,
        [OLD_SETTING]: JSON.stringify(old),
      });
      this.#authority = authority;
      this.#old = old;
    });
  }

  /**
   * Sets how long the old CA is kept, counted from now.
   * @param keep in ms; 0 ends it
   * @throws Failure `not_allowed` if there is no old CA; `store_unwritable`
   */
  setOldServingTime(keep: number, now: Instant, readings: readonly ConfirmedTime[]): Promise<void> {
    return this.#runExclusive(async () => {
      const old = this.#old;
      if (old === null)
        throw new Failure('not_allowed', 'there is no old CA to keep or end: one exists only after a rotation');
      await this.#saveOld(keep === 0 ? null : { ...old, ...servingPeriod(keep, now, readings) });
    });
  }

  /**
   * Ends the old CA if its time is over: by all readings of the true time, because one response of a portal may have a
   * wrong date, and by the boot clock. If its end was unknown because the clock was not confirmed, sets it now.
   * @returns whether the old CA has ended
   * @throws Failure `store_unwritable`
   */
  retireOldIfDue(readings: readonly ConfirmedTime[], now: Instant): Promise<boolean> {
    return this.#runExclusive(async () => {
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
      await this.#saveOld(null);
      return true;
    });
  }

  async #saveOld(old: StoredOldAuthority): Promise<void> {
    await this.#store.saveSetting(OLD_SETTING, JSON.stringify(old));
    this.#old = old;
  }

  #runExclusive<Result>(work: () => Promise<Result>): Promise<Result> {
    const done = this.#lastTask.then(work);
    this.#lastTask = done.catch(() => undefined);
    return done;
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

function parseOldAuthority(text: string | null): StoredOldAuthority {
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), StoredOldAuthority), text);
  return parsed.success ? parsed.output : null;
}

/** @param readings of the true time: if they differ, the latest counts */
function servingPeriod(keep: number, now: Instant, readings: readonly ConfirmedTime[]) {
  const times = timesAt(readings, now);
  return { since: now, keep, until: times.length === 0 ? null : Math.max(...times) + keep };
}

function oldStillServed({ fingerprint, servedUntil: until }: OldAuthority): Failure {
  const end = until === null ? 'the clock is confirmed' : new Date(until).toISOString();
  return new Failure(
    'not_allowed',
    `only one old CA can be kept at a time, and appliances that trust the old CA (${fingerprint}) are served until ${end}: end that first ("latchkey ca --keep-old 0"), or rotate with --keep-old 0, which ends both`,
  );
}
