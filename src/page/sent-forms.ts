import type { IssuedCredentials } from '../core/administration.ts';
import type { Timers } from '../core/clock.ts';
import type { PageSession } from '../core/setup-access.ts';

/** Credentials, and whether they were issued for a new appliance. */
export interface IssuedByForm {
  readonly credentials: IssuedCredentials;
  readonly isNewAppliance: boolean;
}

/** How long a result is kept, in ms: rotating a phone or going back may reload a page or send a form again. */
const RESULT_TTL_MS = 600_000;

/** What forms have led to, in memory only and for their session only. A form that is sent again gets the same result. */
export class SentForms<Result> {
  readonly #timers: Timers;
  readonly #sent = new Map<string, { readonly result: Promise<Result>; cancelTimer(): void }>();

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  /**
   * The result of a form: from now, or from when it was first sent.
   * @param form its idempotency key
   * @param name that was typed in it
   * @throws the error of `act`; the form may be sent again then
   */
  async getOrRun(session: PageSession, form: string, name: string, act: () => Promise<Result>): Promise<Result> {
    const key = keyOf(session, form, name);
    const before = this.#sent.get(key);
    if (before !== undefined) return before.result;
    const result = act();
    this.#sent.set(key, { result, cancelTimer: this.#timers.after(RESULT_TTL_MS, () => this.#sent.delete(key)) });
    try {
      return await result;
    } catch (error) {
      this.delete(session, form, name);
      throw error;
    }
  }

  /** The result of a form that was sent before; null if it has expired or was deleted. */
  async find(session: PageSession, form: string, name: string): Promise<Result | null> {
    return (await this.#sent.get(keyOf(session, form, name))?.result) ?? null;
  }

  delete(session: PageSession, form: string, name: string): void {
    const key = keyOf(session, form, name);
    this.#sent.get(key)?.cancelTimer();
    this.#sent.delete(key);
  }

  close(): void {
    for (const { cancelTimer } of this.#sent.values()) cancelTimer();
    this.#sent.clear();
  }
}

function keyOf({ csrfToken }: PageSession, form: string, name: string): string {
  return JSON.stringify([csrfToken, form, name]);
}
