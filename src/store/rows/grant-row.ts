import * as v from 'valibot';
import type { Grant } from '../../core/grants/grant.ts';
import type { RefreshAttempt, StoredGrant } from '../../core/store.ts';
import { instantSchema } from '../../system/instant-schema.ts';
import type { Sealing } from '../keys/sealing.ts';
import { doubt, jsonOrNull, parseJson, revealSecret, sealed, storedTokens } from './schemas.ts';

const attempt = v.nullable(v.object({ token: v.string(), at: instantSchema }));

/** Sealed together, because a token of unknown age is useless. */
const tokens = v.object(storedTokens);

/** An attempt takes some 130 characters, and its times sometimes have one more digit. */
const ATTEMPT_PADDING = 160;
/** Times and tokens of one portal differ by a few characters from one refresh to the next. */
const TOKENS_PADDING = 64;

const nullableText = v.nullable(v.string());

/** A row of `grants`. The row of a deleted grant has no tokens. */
export const grantRow = v.object({
  connection: v.string(),
  generation: v.pipe(v.number(), v.integer(), v.minValue(1)),
  sealed: v.nullable(sealed),
  attempt: nullableText,
  doubt: nullableText,
  refused: nullableText,
  distrusted: nullableText,
  misconfigured: nullableText,
});

export type GrantRow = v.InferOutput<typeof grantRow>;

/**
 * The open refresh attempt as a column. It has the same length with and without an attempt, so that SQLite writes only
 * the page that it is on, and not the whole row with its tokens.
 */
export function attemptColumn(attempt: RefreshAttempt | null): string {
  return padJson(JSON.stringify(attempt), ATTEMPT_PADDING);
}

/** Pads a JSON text with blanks to a multiple of `step` characters: a row that keeps its length keeps its pages. */
function padJson(json: string, step: number): string {
  return json.padEnd(step * Math.ceil(json.length / step));
}

/** The identity that tokens are sealed with: they are valid only for this connection and this generation. */
export function grantRowIdentity({ connection, generation }: Pick<GrantRow, 'connection' | 'generation'>): string {
  return `grants/${connection}/${generation}`;
}

/** A grant as a row, its tokens sealed; a new grant has no open attempt. */
export function toGrantRow(grant: Grant, sealing: Sealing): GrantRow {
  const { connection, generation, doubt, refused, accessTokenRejectedAt: distrusted, misconfigured, ...rest } = grant;
  return {
    connection,
    generation,
    sealed: sealing.seal(grantRowIdentity(grant), padJson(JSON.stringify(rest, revealSecret), TOKENS_PADDING)),
    attempt: attemptColumn(null),
    doubt: jsonOrNull(doubt),
    refused: jsonOrNull(refused),
    distrusted: jsonOrNull(distrusted),
    misconfigured: jsonOrNull(misconfigured),
  };
}

/**
 * Opens a row that has tokens.
 * @throws Failure as {@link Sealing}, or `store_unreadable`
 */
export function readGrant(row: GrantRow, sealing: Sealing): StoredGrant {
  const where = grantRowIdentity(row);
  return {
    grant: {
      connection: row.connection,
      generation: row.generation,
      ...parseJson(tokens, where, sealing.open(where, row.sealed ?? '')),
      doubt: parseJson(v.nullable(doubt), where, row.doubt ?? 'null'),
      refused: parseJson(v.nullable(instantSchema), where, row.refused ?? 'null'),
      accessTokenRejectedAt: parseJson(v.nullable(instantSchema), where, row.distrusted ?? 'null'),
      misconfigured: parseJson(v.nullable(instantSchema), where, row.misconfigured ?? 'null'),
    },
    attempt: parseJson(attempt, where, row.attempt ?? 'null'),
  };
}
