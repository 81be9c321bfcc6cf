import type Database from 'better-sqlite3';
import * as v from 'valibot';
import { Failure } from '../core/failure.ts';
import {
  type ApplianceRow,
  applianceRow,
  type InviteRow,
  inviteRow,
  readAppliance,
  type SessionRow,
  sessionRow,
} from './appliance-rows.ts';
import { type HistoryRow, historyRow } from './history-table.ts';
import { readGrant, readPairing } from './rows.ts';
import type { Sealing } from './sealing.ts';

const text = v.string();
const optional = v.nullable(v.string());
const settingRow = v.object({ name: text, sealed: text });
const anyGrantRow = v.object({
  appliance: text,
  generation: v.pipe(v.number(), v.integer(), v.minValue(1)),
  tokens: optional,
  attributes: optional,
  attempt: optional,
  doubt: optional,
  refused: optional,
  /** Not there in schema 1. */
  distrusted: v.exactOptional(optional, null),
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
/** A row of `grants`; one that was forgotten has no tokens. */
export type AnyGrantRow = v.InferOutput<typeof anyGrantRow>;
type NumberedPairingRow = v.InferOutput<typeof pairingRow>;

/** All that can be read of a database, damaged or not. */
export interface Salvage {
  readonly settings: ReadonlyMap<string, SettingRow>;
  readonly appliances: readonly ApplianceRow[];
  readonly grants: ReadonlyMap<string, AnyGrantRow>;
  readonly pairings: readonly NumberedPairingRow[];
  /** In the order of their numbers. */
  readonly sessions: readonly SessionRow[];
  readonly invites: readonly InviteRow[];
  /** Of a sound database nobody needs it, and none is read. */
  readonly history: readonly HistoryRow[];
  /** Rows that are there, and whose content can't be opened or makes no sense, such as `grants/<appliance>`. */
  readonly unreadable: ReadonlySet<string>;
  /** How many sealed values could be opened: none where the key is another one. */
  readonly opened: number;
  /** What is wrong with the file as such, null where it is sound. */
  readonly damage: string | null;
}

/**
 * Reads whatever can be read, changing nothing; of a damaged table what comes before the damage and behind it. The
 * database may have any schema.
 */
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

  async function check(row: string, read: () => unknown): Promise<void> {
    try {
      await read();
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      unreadable.add(row);
    }
  }

  const settings = table('settings', settingRow, 'name', "WHERE name NOT LIKE '%.damaged'");
  const appliances = table('appliances', applianceRow, 'id');
  const grants = table('grants', anyGrantRow, 'appliance');
  const pairings = table('pairings', pairingRow, 'number');
  const sessions = isYoung(database) ? [] : table('sessions', sessionRow, 'number');
  const invites = isYoung(database) ? [] : table('invites', inviteRow, 'hash');
  const open = async (row: string, read: () => Promise<unknown>) =>
    check(row, async () => {
      await read();
      opened += 1;
    });
  for (const row of appliances) await check(`appliances/${row.id}`, () => readAppliance(row));
  for (const { name, sealed } of settings) {
    await open(`settings/${name}`, () => sealing.open(`settings/${name}`, sealed));
  }
  for (const row of grants) {
    const { tokens } = row;
    if (tokens === null) continue;
    await open(`grants/${row.appliance}`, () => readGrant({ ...row, tokens }, sealing));
  }
  for (const row of pairings) await open(`pairings/${row.id}`, () => readPairing(row, sealing));
  const isSound = damage === null && unreadable.size === 0;
  return {
    settings: new Map(settings.map((row) => [row.name, row])),
    appliances,
    grants: new Map(grants.map((row) => [row.appliance, row])),
    pairings,
    sessions: sessions.toSorted((a, b) => a.number - b.number),
    invites,
    history: isSound ? [] : historyLeft(database),
    unreadable,
    opened,
    damage,
  };
}

/** What can be read of the history from its beginning on; where there is none, or all is damaged, nothing is lost that counts. */
function historyLeft(database: Database.Database): HistoryRow[] {
  const rows: HistoryRow[] = [];
  try {
    for (const raw of database.prepare('SELECT * FROM history ORDER BY appliance, number').iterate()) {
      const row = v.safeParse(historyRow, raw);
      if (row.success) rows.push(row.output);
    }
  } catch {
    return rows;
  }
  return rows;
}

/** Whether it is of schema 1, which has neither sessions nor invites. */
function isYoung(database: Database.Database): boolean {
  try {
    return Number(database.pragma('user_version', { simple: true })) < 2;
  } catch {
    return false;
  }
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
