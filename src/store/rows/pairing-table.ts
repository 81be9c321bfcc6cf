import * as v from 'valibot';
import { Failure } from '../../core/failure.ts';
import { FAILURE_REASONS, type Pairing } from '../../core/pairings/pairing.ts';
import { instant } from '../../system/instant-schema.ts';
import type { Sql } from '../database/sql.ts';
import type { Sealing } from '../keys/sealing.ts';
import { parseJson, scope } from './schemas.ts';

const link = v.object({
  authorizeUrl: v.string(),
  codeUrl: v.string(),
  tokenUrl: v.string(),
  redirect: v.nullable(v.string()),
});

/** What could plant or fetch a code. */
const secretPart = v.object({
  nonce: v.string(),
  link: v.nullable(link),
  earlier: v.exactOptional(v.array(link)),
  device: v.nullable(
    v.object({
      codeHash: v.string(),
      userCode: v.string(),
      superseded: v.exactOptional(v.array(v.object({ codeHash: v.string(), userCode: v.string() }))),
      shared: v.exactOptional(v.literal(true)),
    }),
  ),
});
const pairingAttributes = v.object({
  portal: v.string(),
  scope,
  begun: instant,
  lifetime: v.number(),
  spentCodes: v.array(v.string()),
  setback: v.nullable(v.picklist(['answer_lost', 'code_refused', 'portal_rejected'])),
  round: v.exactOptional(v.string()),
  failed: v.exactOptional(instant),
});
const step = v.variant('kind', [
  v.object({ kind: v.literal('asking') }),
  v.object({ kind: v.literal('waiting') }),
  v.object({ kind: v.literal('exchanging'), since: instant }),
  v.object({
    kind: v.literal('ended'),
    result: v.variant('kind', [
      v.object({ kind: v.literal('paired'), scope }),
      v.object({ kind: v.literal('failed'), reason: v.picklist(FAILURE_REASONS) }),
    ]),
  }),
]);

/** A row of `pairings`. */
export const pairingColumns = v.object({
  id: v.string(),
  appliance: v.string(),
  sealed: v.string(),
  attributes: v.string(),
  step: v.string(),
  mac: v.nullable(v.string()),
});

export type PairingRow = v.InferOutput<typeof pairingColumns>;

/** A pairing as a row: what could plant or fetch a code is sealed, and the user code with it. Whose it is, is signed. */
function pairingRow(pairing: Pairing, sealing: Sealing): PairingRow {
  const { id, appliance, nonce, portal, begun, lifetime, spentCodes, setback, device, round, failed } = pairing;
  const { link: held, earlier, ...bare } = { link: null, earlier: undefined, ...pairing.step };
  const row = {
    id,
    appliance,
    sealed: sealing.seal(`pairings/${id}`, JSON.stringify({ nonce, link: held, earlier, device })),
    attributes: JSON.stringify({ portal, scope: pairing.scope, begun, lifetime, spentCodes, setback, round, failed }),
    step: JSON.stringify(bare),
  };
  return { ...row, mac: sealing.sign('pairings', row) };
}

/** @throws Failure as {@link Sealing}, or `store_unreadable` */
export function readPairing(row: PairingRow, sealing: Sealing): Pairing {
  const where = `pairings/${row.id}`;
  const { nonce, device, link: held, ...links } = parseJson(secretPart, where, sealing.open(where, row.sealed));
  if (!sealing.isSigned('pairings', row))
    throw new Failure('store_unreadable', `${where} was changed by somebody else`);
  const bare = parseJson(step, where, row.step);
  const attributes = parseJson(pairingAttributes, where, row.attributes);
  const common = { id: row.id, appliance: row.appliance, nonce, device, ...attributes };
  if (bare.kind === 'ended') return { ...common, step: bare };
  if (bare.kind === 'asking') return { ...common, step: { ...bare, ...links } };
  if (held === null) throw new Failure('store_unreadable', `${where} has lost its link`);
  return { ...common, step: { ...bare, link: held, ...links } };
}

/** How many ended pairings of an appliance are kept, so that their result page can be shown again. */
const ENDED_KEPT = 5;

/** The pairings as rows; their numbers are the order in which they began. */
export class PairingTable {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** One that can't be read is none: another is soon begun. */
  all(): Pairing[] {
    return this.#sql.all<PairingRow>('SELECT * FROM pairings ORDER BY number').flatMap((row) => {
      try {
        return [readPairing(row, this.#sql.sealing)];
      } catch (error) {
        if (error instanceof Failure) return [];
        throw error;
      }
    });
  }

  /** Two statements: to be called in a transaction. */
  put(pairing: Pairing): void {
    const row = pairingRow(pairing, this.#sql.sealing);
    this.#sql.run(
      `INSERT INTO pairings (id, appliance, sealed, attributes, step, mac) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET
         sealed = excluded.sealed, attributes = excluded.attributes, step = excluded.step, mac = excluded.mac`,
      ...[row.id, row.appliance, row.sealed, row.attributes, row.step, row.mac],
    );
    this.#sql.run(
      `DELETE FROM pairings WHERE appliance = ? AND json_extract(step, '$.kind') = 'ended' AND number <=
         (SELECT number FROM pairings WHERE appliance = ? ORDER BY number DESC LIMIT 1 OFFSET ${ENDED_KEPT})`,
      ...[row.appliance, row.appliance],
    );
  }
}
