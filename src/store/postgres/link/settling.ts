import type { Statements } from '../database/sql.ts';

/**
 * How long the hubs have, after a switch to a server that may have lost commits, to write what they know again, in ms
 * by the database's clock. Until then nobody begins a refresh of a grant that may be older than what another hub knows.
 * A hub that is looking for the database usually finds it within that time: see `RETRY_PAUSE` and `CONNECT_TIMEOUT`.
 */
export const SETTLING_TIME = 10_000;

const SETTLED_AT = `switched_at + ${SETTLING_TIME} * interval '1 ms'`;
// A server whose clock was set back does not settle for ever.
const SETTLING = `FROM site WHERE clock_timestamp() BETWEEN switched_at AND ${SETTLED_AT}`;

/** SQL: whether that time has not ended. */
export const IS_SETTLING = `EXISTS (SELECT ${SETTLING})`;
/** SQL: when it ends, in ms since 1970 by the database's clock; null if it has ended. */
export const SETTLES_AT = `(SELECT (extract(epoch FROM ${SETTLED_AT}) * 1000)::float8 ${SETTLING})`;

/** What is left of that time, in ms; 0 if it has ended. */
export async function settlingTime(sql: Statements): Promise<number> {
  const [row] = await sql.all<{ remaining: number }>(
    `SELECT (extract(epoch FROM ${SETTLED_AT} - clock_timestamp()) * 1000)::float8 AS remaining ${SETTLING}`,
  );
  return row?.remaining ?? 0;
}
