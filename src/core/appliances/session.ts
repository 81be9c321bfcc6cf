import type { Instant } from '../clock.ts';

/**
 * The record of a refresh token that the hub itself issues (RFC 6749, 6). Only the device flow issues one, for
 * libraries that require it. It is never the portal's. It does not rotate, because the client that uses it must
 * authenticate.
 */
export interface Session {
  /** SHA-256 of the refresh token, base64url: it has 256 random bits. */
  readonly hash: string;
  /** The appliance's id. */
  readonly appliance: string;
  /** The `codeHash` of the device flow that issued it. */
  readonly device: string;
  readonly begun: Instant;
}

/**
 * The result of ending a session. `none`: no session has that refresh token; `unwritten`: it ended in memory, but not
 * in the store.
 */
export type EndSessionResult = 'ended' | 'unwritten' | 'none';

/** How many sessions of an appliance the hub keeps. The device flow creates one each time, without a limit. */
export const MAX_SESSIONS_PER_APPLIANCE = 5;
