import type { HookTrial } from '../core/reports/notice.ts';

/** What came of carrying a message once; `detail` in words, without any secret. */
export interface Carried {
  readonly ok: boolean;
  readonly detail: string;
  /** Whether it may go better another time. */
  readonly passes: boolean;
}

/** A way out of the house. */
export interface Hook {
  readonly kind: HookTrial['hook'];
  /** As it may be told to anybody: `HookTrial.target`. */
  readonly target: string;
  /**
   * Carries a message once, within bounds of its own; never rejects.
   * @param message JSON, in ASCII alone
   * @param signal ends it at once
   */
  carry(message: string, signal: AbortSignal): Promise<Carried>;
}
