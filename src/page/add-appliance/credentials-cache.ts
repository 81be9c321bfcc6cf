import type { IssuedCredentials } from '../../core/administration.ts';
import { type Clock, elapsed, type Instant, type Timers } from '../../core/clock.ts';
import type { PageSession } from '../../core/setup-access.ts';

/** How long credentials can be looked at again, in ms: a phone may be turned, or its page loaded anew. */
const CREDENTIALS_TTL_MS = 600_000;
/** Credentials that are kept at a time; of more the oldest go. */
const MAX_ENTRIES = 50;

/** Credentials, and whether the appliance was new too when they were made. */
export interface CachedCredentials {
  readonly credentials: IssuedCredentials;
  readonly isNewAppliance: boolean;
}

interface CacheEntry {
  readonly cachedAt: Instant;
  readonly credentials: Promise<CachedCredentials>;
}

/**
 * Credentials between their being made and their having been noted: in memory alone, for the session that asked for them,
 * and never made twice for one form, however often it is sent.
 */
export class CredentialsCache {
  readonly #clock: Clock;
  readonly #timers: Timers;
  readonly #entries = new Map<string, CacheEntry>();
  #cancelTimer: (() => void) | null = null;

  constructor({ clock, timers }: { readonly clock: Clock; readonly timers: Timers }) {
    this.#clock = clock;
    this.#timers = timers;
  }

  /**
   * The credentials of a form: made now, or those that were when it was sent before.
   * @param form the form's token
   * @throws whatever `make` throws; the form may be sent again then
   */
  async getOrIssue(
    session: PageSession,
    form: string,
    name: string,
    make: () => Promise<CachedCredentials>,
  ): Promise<CachedCredentials> {
    this.#deleteExpired();
    const key = cacheKey(session, form, name);
    const known = this.#entries.get(key);
    if (known !== undefined) return known.credentials;
    const shown = make();
    this.#entries.set(key, { cachedAt: this.#clock.now(), credentials: shown });
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > MAX_ENTRIES && oldest !== undefined) this.#entries.delete(oldest);
    this.#cancelTimer ??= this.#timers.after(CREDENTIALS_TTL_MS, () => this.#sweep());
    try {
      return await shown;
    } catch (error) {
      this.#entries.delete(key);
      throw error;
    }
  }

  /** Those of a form that was sent before; null where they are shown no longer. */
  async find(session: PageSession, form: string, name: string): Promise<CachedCredentials | null> {
    this.#deleteExpired();
    return (await this.#entries.get(cacheKey(session, form, name))?.credentials) ?? null;
  }

  /** Whoever asked for them has noted them. */
  delete(session: PageSession, form: string, name: string): void {
    this.#entries.delete(cacheKey(session, form, name));
  }

  close(): void {
    this.#cancelTimer?.();
    this.#entries.clear();
  }

  #sweep(): void {
    this.#deleteExpired();
    this.#cancelTimer = this.#entries.size === 0 ? null : this.#timers.after(CREDENTIALS_TTL_MS, () => this.#sweep());
  }

  #deleteExpired(): void {
    const now = this.#clock.now();
    for (const [key, { cachedAt: since }] of this.#entries) {
      if ((elapsed(since, now) ?? CREDENTIALS_TTL_MS) >= CREDENTIALS_TTL_MS) this.#entries.delete(key);
    }
  }
}

function cacheKey({ csrfToken: csrf }: PageSession, form: string, name: string): string {
  return JSON.stringify([csrf, form, name]);
}
