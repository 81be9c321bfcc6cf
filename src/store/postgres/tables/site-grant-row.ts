import type { GrantRow } from '../../rows/grant-row.ts';

/** A row of `grants`; `leased_until` in ms since 1970, by the database's clock. */
export interface SiteGrantRow extends GrantRow {
  readonly attempt_id: string | null;
  readonly holder: string | null;
  readonly leased_until: number | null;
  readonly revision: number;
  readonly confirmed: boolean;
}

/** What tells whether a row is older than what a hub knows. */
export type RowVersion = Pick<SiteGrantRow, 'generation' | 'revision'>;

/** SQL: the end of a lease. */
export const LEASED_UNTIL = '(extract(epoch FROM leased_until) * 1000)::float8 AS leased_until';
/** SQL: the columns of a {@link SiteGrantRow}. */
export const COLUMNS = `connection, generation, sealed, attempt, attempt_id, holder,
  ${LEASED_UNTIL}, doubt, refused, distrusted, misconfigured, revision, confirmed`;
/** SQL: the open attempt of a row ends, or a new grant has none. */
export const NO_ATTEMPT = 'attempt = NULL, attempt_id = NULL, holder = NULL, leased_until = NULL';

/** A generation never comes back, and its revisions only grow, unless the database loses writes. */
export function isOlder(row: RowVersion, known: RowVersion): boolean {
  return row.generation < known.generation || (row.generation === known.generation && row.revision < known.revision);
}
