import type Database from 'better-sqlite3';
import * as v from 'valibot';
import { Failure } from '../core/failure.ts';
import { readGrant, readPairing } from './rows.ts';
import type { Sealing } from './sealing.ts';

const text = v.string();
const optional = v.nullable(v.string());
const settingRow = v.object({ name: text, sealed: text });
const applianceRow = v.object({
  id: v.pipe(text, v.uuid()),
  name: v.pipe(text, v.regex(/^[a-z0-9][a-z0-9-]{0,62}$/)),
  scope: optional,
  portal: text,
  secret_hash: text,
});
const anyGrantRow = v.object({
  appliance: text,
  generation: v.pipe(v.number(), v.integer(), v.minValue(1)),
  tokens: optional,
  attributes: optional,
  attempt: optional,
  doubt: optional,
  refused: optional,
});
const pairingRow = v.object({
  number: v.number(),
  id: text,
  appliance: text,
  sealed: text,
  attributes: text,
  step: text,
});

export type SettingRow = v.InferOutput<typeof settingRow>;
export type ApplianceRow = v.InferOutput<typeof applianceRow>;
/** A row of `grants`; one that was forgotten has no tokens. */
export type AnyGrantRow = v.InferOutput<typeof anyGrantRow>;
type NumberedPairingRow = v.InferOutput<typeof pairingRow>;

/** All that can be read of a database, damaged or not. */
export interface Salvage {
  readonly settings: ReadonlyMap<string, SettingRow>;
  readonly appliances: readonly ApplianceRow[];
  readonly grants: ReadonlyMap<string, AnyGrantRow>;
  readonly pairings: readonly NumberedPairingRow[];
  /** Rows that are there, and whose content can't be opened or makes no sense, such as `grants/<appliance>`. */
  readonly unreadable: ReadonlySet<string>;
  /** How many sealed values could be opened: none where the key is another one. */
  readonly opened: number;
  /** What is wrong with the file as such, null where it is sound. */
  readonly damage: string | null;
}

/** Reads whatever can be read; of a damaged table what comes before the damage and behind it. */
export async function salvage(database: Database.Database, sealing: Sealing): Promise<Salvage> {
  const unreadable = new Set<string>();
  let damage = structuralDamage(database);
  let opened = 0;

  function table<Row>(name: string, schema: v.GenericSchema<unknown, Row>, key: string, where = ''): Row[] {
    const rows = new Map<unknown, Row>();
    for (const order of ['ASC', 'DESC']) {
      try {
        for (const raw of database.prepare(`SELECT * FROM ${name} ${where} ORDER BY ${key} ${order}`).iterate()) {
          const row = v.safeParse(schema, raw);
          if (row.success) rows.set(Reflect.get(Object(raw), key), row.output);
          else damage ??= `a row of ${name} makes no sense`;
        }
        break;
      } catch (error) {
        damage ??= codeOf(error);
      }
    }
    return [...rows.values()];
  }

  async function check(row: string, open: () => Promise<unknown>): Promise<void> {
    try {
      await open();
      opened += 1;
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      unreadable.add(row);
    }
  }

  const settings = table('settings', settingRow, 'name', "WHERE name NOT LIKE '%.damaged'");
  const appliances = table('appliances', applianceRow, 'id');
  const grants = table('grants', anyGrantRow, 'appliance');
  const pairings = table('pairings', pairingRow, 'number');
  for (const { name, sealed } of settings) {
    await check(`settings/${name}`, () => sealing.open(`settings/${name}`, sealed));
  }
  for (const row of grants) {
    const { tokens } = row;
    if (tokens === null) continue;
    await check(`grants/${row.appliance}`, () => readGrant({ ...row, tokens }, sealing));
  }
  for (const row of pairings) await check(`pairings/${row.id}`, () => readPairing(row, sealing));
  return {
    settings: new Map(settings.map((row) => [row.name, row])),
    appliances,
    grants: new Map(grants.map((row) => [row.appliance, row])),
    pairings,
    unreadable,
    opened,
    damage,
  };
}

function structuralDamage(database: Database.Database): string | null {
  try {
    const [first] = database.pragma('integrity_check(1)') as { integrity_check: string }[];
    if (first?.integrity_check !== 'ok') return first?.integrity_check ?? 'it can not be checked';
    return (database.pragma('foreign_key_check') as unknown[]).length > 0 ? 'a row belongs to no appliance' : null;
  } catch (error) {
    return codeOf(error);
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}
