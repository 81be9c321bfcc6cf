import type { Instant } from '../clock.ts';

/**
 * What stands behind a refresh token of the hub's own (RFC 6749, 6), which only the device flow gives. It serves libraries
 * that insist on one, it is never the portal's, and it does not rotate: whoever uses it is authenticated.
 */
export interface Session {
  /** SHA-256 of the refresh token, base64url: it has 256 random bits. */
  readonly hash: string;
  /** The appliance's id. */
  readonly appliance: string;
  /** The `codeHash` of the device flow that gave it. */
  readonly device: string;
  readonly begun: Instant;
}

/** What became of ending a session: none of that refresh token was known, or it ended in memory alone so far. */
export type EndSessionResult = 'ended' | 'unwritten' | 'none';

/** How many sessions of one appliance are kept: it may come back through the device flow as often as it likes. */
export const MAX_SESSIONS_PER_APPLIANCE = 5;
