/** A reload that replaces this hub by one with another configuration or other portals, when it is started. */
export interface PreparedReload {
  readonly id: string;
  /** Replaces this hub. Call it after the client has got the response. */
  start(): void;
}

/** The state of a reload; `unknown` if the daemon was restarted since. */
export type ReloadOutcome =
  | { readonly state: 'under_way' | 'done' | 'unknown' }
  /** The hub runs with the previous configuration. */
  | { readonly state: 'failed'; readonly message: string };

/** The reloads of the daemon that runs the hub. */
export interface ReloadControl {
  /** @param obstacle returns why the hub must not be replaced now; null if it may be */
  setReloadGuard(obstacle: () => Promise<string | null>): void;
  /** @throws Failure `config_invalid`, `not_allowed` */
  prepare(): Promise<PreparedReload>;
  /**
   * Changes something in the store that only the next hub reads, and prepares a reload with the same configuration.
   * @param change is not called if there can be no reload now
   * @throws Failure `not_allowed`, and whatever `change` throws
   */
  prepareAfter(change: () => Promise<void>): Promise<PreparedReload>;
  outcome(id: string): ReloadOutcome;
}
