import type { IssuedCredentials } from '../../core/administration.ts';
import { type Clock, elapsed, type Instant, type Timers } from '../../core/clock.ts';
import type { PageSession } from '../../core/setup-access.ts';

/** How long credentials can be looked at again, in ms: a phone may be turned, or its page loaded anew. */
const SHOWN_FOR = 600_000;
/** Credentials that are kept at a time; of more the oldest go. */
const MAX_KEPT = 50;

/** Credentials, and whether the appliance was new too when they were made. */
export interface Shown {
  readonly issued: IssuedCredentials;
  readonly isNew: boolean;
}

interface Kept {
  readonly since: Instant;
  readonly shown: Promise<Shown>;
}

/**
 * Credentials between their being made and their having been noted: in memory alone, for the session that asked for them,
 * and never made twice for one form, however often it is sent.
 */
export class ShownCredentials {
  readonly #clock: Clock;
  readonly #timers: Timers;
  readonly #kept = new Map<string, Kept>();
  #cancel: (() => void) | null = null;

  constructor({ clock, timers }: { readonly clock: Clock; readonly timers: Timers }) {
    this.#clock = clock;
    this.#timers = timers;
  }

  /**
   * The credentials of a form: made now, or those that were when it was sent before.
   * @param form the form's token
   * @throws whatever `make` throws; the form may be sent again then
   */
  async once(session: PageSession, form: string, name: string, make: () => Promise<Shown>): Promise<Shown> {
    this.#tidy();
    const key = keyOf(session, form, name);
    const known = this.#kept.get(key);
    if (known !== undefined) return known.shown;
    const shown = make();
    this.#kept.set(key, { since: this.#clock.now(), shown });
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > MAX_KEPT && oldest !== undefined) this.#kept.delete(oldest);
    this.#cancel ??= this.#timers.after(SHOWN_FOR, () => this.#expire());
    try {
      return await shown;
    } catch (error) {
      this.#kept.delete(key);
      throw error;
    }
  }

  /** Those of a form that was sent before; null where they are shown no longer. */
  async find(session: PageSession, form: string, name: string): Promise<Shown | null> {
    this.#tidy();
    return (await this.#kept.get(keyOf(session, form, name))?.shown) ?? null;
  }

  /** Whoever asked for them has noted them. */
  forget(session: PageSession, form: string, name: string): void {
    this.#kept.delete(keyOf(session, form, name));
  }

  close(): void {
    this.#cancel?.();
    this.#kept.clear();
  }

  #expire(): void {
    this.#tidy();
    this.#cancel = this.#kept.size === 0 ? null : this.#timers.after(SHOWN_FOR, () => this.#expire());
  }

  #tidy(): void {
    const now = this.#clock.now();
    for (const [key, { since }] of this.#kept) {
      if ((elapsed(since, now) ?? SHOWN_FOR) >= SHOWN_FOR) this.#kept.delete(key);
    }
  }
}

function keyOf({ csrf }: PageSession, form: string, name: string): string {
  return JSON.stringify([csrf, form, name]);
}
