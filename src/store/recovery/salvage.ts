import type Database from 'better-sqlite3';
import * as v from 'valibot';
import { Failure } from '../../core/failure.ts';
import type { Sealing } from '../keys/sealing.ts';
import { type ApplianceRow, applianceRow, readAppliance } from '../rows/appliance-table.ts';
import { type AnyGrantRow, anyGrantRow, grantPlace, readGrant } from '../rows/grant-table.ts';
import { type HistoryRow, historyRow } from '../rows/history-table.ts';
import { type InviteRow, inviteRow } from '../rows/invite-table.ts';
import { pairingColumns, readPairing } from '../rows/pairing-table.ts';
import { type SessionRow, sessionRow } from '../rows/session-table.ts';
import { type SettingRow, settingRow } from '../rows/setting-table.ts';

const pairingRow = v.object({ number: v.number(), ...pairingColumns.entries });

type NumberedPairingRow = v.InferOutput<typeof pairingRow>;

interface SealedRows {
  readonly settings: readonly SettingRow[];
  readonly grants: readonly AnyGrantRow[];
  readonly pairings: readonly NumberedPairingRow[];
}

/** All that can be read of a database, damaged or not; sealed and signed by {@link Salvage.sealing}. */
export interface Salvage {
  readonly sealing: Sealing;
  /** Whether the database has it sealed with another key. */
  readonly isResealed: boolean;
  readonly settings: ReadonlyMap<string, SettingRow>;
  readonly appliances: readonly ApplianceRow[];
  readonly grants: ReadonlyMap<string, AnyGrantRow>;
  readonly pairings: readonly NumberedPairingRow[];
  /** In the order of their numbers; of sessions and invites those that the hub has given. */
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
 * Reads whatever can be read, changing nothing; of a damaged table what comes before the damage and behind it.
 * @param keys those that it may be sealed with; the first where none opens anything
 * @param to how what is read is to be sealed and signed; undefined for the key that opens it
 */
export function salvage(database: Database.Database, keys: readonly [Sealing, ...Sealing[]], to?: Sealing): Salvage {
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

  /** Reads a row, and gives what `read` makes of it; the row as it is where it can't be read. */
  function checked<Row>(name: string, row: Row, read: () => Row): Row {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      unreadable.add(name);
      return row;
    }
  }

  const rows = {
    settings: table('settings', settingRow, 'name', "WHERE name NOT LIKE '%.damaged'"),
    appliances: table('appliances', applianceRow, 'id'),
    grants: table('grants', anyGrantRow, 'appliance'),
    pairings: table('pairings', pairingRow, 'number'),
    sessions: table('sessions', sessionRow, 'number'),
    invites: table('invites', inviteRow, 'hash'),
  };
  const from = keys.find((key) => opensAny(rows, key)) ?? keys[0];
  const sealing = to ?? from;
  const isResealed = from !== sealing;

  const resealed = (row: string, sealed: string) => {
    const text = from.open(row, sealed);
    opened += 1;
    return isResealed ? sealing.seal(row, text) : sealed;
  };
  const signed = <Row extends { mac: string | null }>(name: string, row: Row): Row =>
    isResealed ? { ...row, mac: sealing.sign(name, row) } : row;
  const appliances = rows.appliances.map((row) =>
    checked(`appliances/${row.id}`, row, () => {
      readAppliance(row, from);
      return signed('appliances', row);
    }),
  );
  const settings = rows.settings.map((row) =>
    checked(`settings/${row.name}`, row, () => ({ ...row, sealed: resealed(`settings/${row.name}`, row.sealed) })),
  );
  const grants = rows.grants.map((row) => {
    const { tokens } = row;
    if (tokens === null) return row;
    return checked(`grants/${row.appliance}`, row, () => {
      readGrant({ ...row, tokens }, from);
      return { ...row, tokens: resealed(grantPlace(row), tokens) };
    });
  });
  const pairings = rows.pairings.map((row) =>
    checked(`pairings/${row.id}`, row, () => {
      readPairing(row, from);
      return signed('pairings', { ...row, sealed: resealed(`pairings/${row.id}`, row.sealed) });
    }),
  );
  const isSound = damage === null && unreadable.size === 0;
  return {
    sealing,
    isResealed,
    settings: new Map(settings.map((row) => [row.name, row])),
    appliances,
    grants: new Map(grants.map((row) => [row.appliance, row])),
    pairings,
    sessions: rows.sessions
      .filter((row) => from.isSigned('sessions', row))
      .map((row) => signed('sessions', row))
      .sort((a, b) => a.number - b.number),
    invites: rows.invites.filter((row) => from.isSigned('invites', row)).map((row) => signed('invites', row)),
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

/** Whether any sealed value is opened by this key. */
function opensAny({ settings, grants, pairings }: SealedRows, key: Sealing): boolean {
  return (
    settings.some(({ name, sealed }) => opens(key, `settings/${name}`, sealed)) ||
    grants.some((row) => opens(key, grantPlace(row), row.tokens)) ||
    pairings.some(({ id, sealed }) => opens(key, `pairings/${id}`, sealed))
  );
}

function opens(key: Sealing, row: string, sealed: string | null): boolean {
  try {
    return sealed !== null && key.open(row, sealed) !== '';
  } catch {
    return false;
  }
}

/**
 * Looks at the hub's own settings, which every schema has, before a database is changed.
 * @throws Failure `store_key_wrong` where there are some, and no key opens any
 */
export function checkKeys(database: Database.Database, keys: readonly Sealing[]): void {
  const rows = database.prepare<[], SettingRow>('SELECT name, sealed FROM settings').all();
  if (
    rows.length === 0 ||
    rows.some(({ name, sealed }) => keys.some((key) => opens(key, `settings/${name}`, sealed)))
  ) {
    return;
  }
  throw new Failure('store_key_wrong', 'no key opens what is in the store');
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
