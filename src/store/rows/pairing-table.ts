import * as v from 'valibot';
import { PAIRING_FAILURE_REASONS, type Pairing } from '../../core/pairings/pairing.ts';
import { instantSchema } from '../../system/instant-schema.ts';
import type { Sql } from '../database/sql.ts';
import type { Sealing } from '../keys/sealing.ts';
import { nullIfDamaged, parseJson, scope, sealed } from './schemas.ts';

const link = v.object({
  authorizeUrl: v.string(),
  codeUrl: v.string(),
  tokenUrl: v.string(),
  redirect: v.nullable(v.string()),
});

const codes = { codeHash: v.string(), userCode: v.string() };
const links = { link, earlier: v.exactOptional(v.array(link)) };

/** Sealed, because of what could plant or fetch a code. */
const sealedAttributes = v.object({
  portal: v.string(),
  scope,
  nonce: v.string(),
  begun: instantSchema,
  lifetime: v.number(),
  spentCodes: v.array(v.string()),
  setback: v.nullable(v.picklist(['answer_lost', 'code_refused', 'portal_rejected'])),
  device: v.nullable(
    v.object({
      ...codes,
      superseded: v.exactOptional(v.array(v.object(codes))),
      shared: v.exactOptional(v.literal(true)),
    }),
  ),
  round: v.exactOptional(v.string()),
  failed: v.exactOptional(instantSchema),
  step: v.variant('kind', [
    v.object({ kind: v.literal('asking'), earlier: links.earlier }),
    v.object({ kind: v.literal('waiting'), ...links }),
    v.object({ kind: v.literal('exchanging'), ...links, since: instantSchema }),
    v.object({
      kind: v.literal('ended'),
      result: v.variant('kind', [
        v.object({ kind: v.literal('paired'), scope }),
        v.object({ kind: v.literal('failed'), reason: v.picklist(PAIRING_FAILURE_REASONS) }),
      ]),
    }),
  ]),
});

/** A row of `pairings`; `number` is the order in which they began. */
export const pairingRow = v.object({
  number: v.number(),
  id: v.string(),
  appliance: v.string(),
  /** What kind of step it is at; what is sealed counts. */
  step: v.string(),
  sealed,
});

export type PairingRow = v.InferOutput<typeof pairingRow>;

/** What a row is sealed for: this pairing, of this appliance. */
export function pairingRowIdentity({ id, appliance }: Pick<PairingRow, 'id' | 'appliance'>): string {
  return `pairings/${id}/${appliance}`;
}

/** @throws Failure as {@link Sealing}, or `store_unreadable` where it makes no sense */
export function readPairing(row: Pick<PairingRow, 'id' | 'appliance' | 'sealed'>, sealing: Sealing): Pairing {
  const where = pairingRowIdentity(row);
  const { setback, round, ...rest } = parseJson(sealedAttributes, where, sealing.open(where, row.sealed));
  return {
    id: row.id,
    appliance: row.appliance,
    ...rest,
    lastFailure: setback,
    ...(round === undefined ? {} : { batch: round }),
  };
}

/** How many ended pairings of an appliance are kept, so that their result page can be shown again. */
const MAX_ENDED_PAIRINGS = 5;

/** The pairings as rows. */
export class PairingTable {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** One that can't be read is none: another is soon begun. */
  all(): Pairing[] {
    const rows = this.#sql.all<PairingRow>('SELECT * FROM pairings ORDER BY number');
    return rows.flatMap((row) => nullIfDamaged(() => readPairing(row, this.#sql.sealing)) ?? []);
  }

  /** Two statements: to be called in a transaction. */
  save(pairing: Pairing): void {
    const { id, appliance, lastFailure, batch, ...rest } = pairing;
    const stored = { ...rest, setback: lastFailure, round: batch };
    const content = this.#sql.sealing.seal(pairingRowIdentity(pairing), JSON.stringify(stored));
    this.#sql.run(
      `INSERT INTO pairings (id, appliance, step, sealed) VALUES (?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET step = excluded.step, sealed = excluded.sealed`,
      ...[id, appliance, pairing.step.kind, content],
    );
    this.#sql.run(
      `DELETE FROM pairings WHERE appliance = ? AND step = 'ended' AND number <=
         (SELECT number FROM pairings WHERE appliance = ? ORDER BY number DESC LIMIT 1 OFFSET ${MAX_ENDED_PAIRINGS})`,
      ...[appliance, appliance],
    );
  }
}
