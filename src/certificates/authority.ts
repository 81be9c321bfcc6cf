import { type ConfirmedTime, elapsed, type Instant, timesAt } from '../core/clock.ts';
import { Failure } from '../core/failure.ts';
import { type Authority, type PermittedNames, spkiFingerprint } from '../system/x509/certificates.ts';
import { createSuccessorInThread } from '../system/x509/issue-in-thread.ts';
import { AuthoritySettings, type OldAuthorityEntry, type StoredAuthority } from './stored-authority.ts';

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

type AuthorityStore = ConstructorParameters<typeof AuthoritySettings>[0];

/** The CA of the hub or of its site, which a rotation may replace while the hub runs. */
export class HubAuthority {
  readonly #store: AuthorityStore;
  #settings: AuthoritySettings;
  #authority: Authority;
  #old: OldAuthorityEntry;
  #lastTask: Promise<unknown> = Promise.resolve();

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
    return this.#runExclusive(async () => {
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
    return this.#runExclusive(async () => {
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
    return this.#runExclusive(async () => {
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

  #runExclusive<Result>(work: () => Promise<Result>): Promise<Result> {
    const done = this.#lastTask.then(work);
    this.#lastTask = done.catch(() => undefined);
    return done;
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
