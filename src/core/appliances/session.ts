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
  /** The id of the connection that the device flow was for. Left out in sessions of before it was recorded. */
  readonly connection?: string;
  readonly begun: Instant;
}

/**
 * The result of ending a session. `none`: no session has that refresh token; `unwritten`: it ended in memory, but not
 * in the store.
 */
export type EndSessionResult = 'ended' | 'unwritten' | 'none';

/** How many sessions of an appliance and a connection are kept. The device flow creates one each time, without a limit. */
export const MAX_SESSIONS = 5;

/** The sessions beyond {@link MAX_SESSIONS}. @param sessions the oldest first */
export function surplusSessions(sessions: readonly Session[]): Session[] {
  const byUse = Map.groupBy(sessions, ({ appliance, connection = '' }) => `${appliance} ${connection}`);
  return [...byUse.values()].flatMap((ofOne) => ofOne.slice(0, -MAX_SESSIONS));
}

/**
 * The id of the connection whose tokens a session is for: the only one of its appliance, also after a move, else that of
 * its device flow. Undefined if that was not recorded.
 * @param used the ids of the connections that its appliance uses
 */
export function sessionConnection({ connection }: Session, used: readonly string[]): string | undefined {
  return used.length === 1 ? used[0] : connection;
}
