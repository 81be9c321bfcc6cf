/**
 * How long a hub has a refresh to itself, in ms by the database's clock: longer than the longest time from taking the
 * lease to the end of the answer, which is the time below and that of a request (`TOKEN_REQUEST_LIMITS`: 120 s).
 */
export const REFRESH_LEASE = 180_000;
/** How long after it has asked for the lease a hub may begin to send the refresh, in ms on its boot clock. */
export const SEND_TIME = 50_000;
/** How long a hub owns a pairing that it runs, and has other work to itself, in ms by the database's clock. */
export const WORK_LEASE = 30_000;

/**
 * SQL: whether a lease has ended by the database's clock. If more than its whole duration seems to be left, that clock
 * was set back, and the lease has ended too.
 * @param column its end
 * @param lease its duration, in ms
 */
export function hasEnded(column: string, lease: number): string {
  return `(${column} < clock_timestamp() OR ${column} > clock_timestamp() + ${lease} * interval '1 ms')`;
}
