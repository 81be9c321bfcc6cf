import type { IssuedCredentials } from '../../core/administration.ts';
import { type Clock, elapsed, type Instant, type Timers } from '../../core/clock.ts';
import type { PageSession } from '../../core/setup-access.ts';

/** How long credentials can be shown again, in ms: rotating a phone or going back may reload the page. */
const CREDENTIALS_TTL_MS = 600_000;
/** Credentials that are held at a time; a further one replaces the oldest. */
const MAX_ENTRIES = 50;

/** Credentials, and whether they were issued for a new appliance. */
export interface CachedCredentials {
  readonly credentials: IssuedCredentials;
  readonly isNewAppliance: boolean;
}

interface CacheEntry {
  readonly cachedAt: Instant;
  readonly credentials: Promise<CachedCredentials>;
}

/**
 * Issued credentials until a person has noted them: only in memory, only for the session that requested them. A form
 * that is sent again gets the same credentials.
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
   * The credentials of a form: issued now, or when the form was first sent.
   * @param form the form's idempotency key
   * @throws the error of `issue`; the form may be sent again then
   */
  async getOrIssue(
    session: PageSession,
    form: string,
    name: string,
    issue: () => Promise<CachedCredentials>,
  ): Promise<CachedCredentials> {
    this.#deleteExpired();
    const key = cacheKey(session, form, name);
    const cached = this.#entries.get(key);
    if (cached !== undefined) return cached.credentials;
    const credentials = issue();
    this.#entries.set(key, { cachedAt: this.#clock.now(), credentials });
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > MAX_ENTRIES && oldest !== undefined) this.#entries.delete(oldest);
    this.#cancelTimer ??= this.#timers.after(CREDENTIALS_TTL_MS, () => this.#sweep());
    try {
      return await credentials;
    } catch (error) {
      this.#entries.delete(key);
      throw error;
    }
  }

  /** The credentials of a form that was sent before; null if they have expired or were deleted. */
  async find(session: PageSession, form: string, name: string): Promise<CachedCredentials | null> {
    this.#deleteExpired();
    return (await this.#entries.get(cacheKey(session, form, name))?.credentials) ?? null;
  }

  /** Deletes credentials that a person has noted. */
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
    for (const [key, { cachedAt }] of this.#entries) {
      if ((elapsed(cachedAt, now) ?? CREDENTIALS_TTL_MS) >= CREDENTIALS_TTL_MS) this.#entries.delete(key);
    }
  }
}

function cacheKey({ csrfToken }: PageSession, form: string, name: string): string {
  return JSON.stringify([csrfToken, form, name]);
}
