import type Database from 'better-sqlite3';
import * as v from 'valibot';
import { Failure } from '../../core/failure.ts';
import type { Sealing } from '../keys/sealing.ts';
import { type ApplianceRow, applianceRow, applianceRowIdentity, readAppliance } from '../rows/appliance-table.ts';
import { type GrantRow, grantRow, grantRowIdentity, readGrant } from '../rows/grant-table.ts';
import { type HistoryRow, historyRow } from '../rows/history-table.ts';
import { type InviteRow, inviteRow, inviteRowIdentity, readInvite } from '../rows/invite-table.ts';
import { type PairingRow, pairingRow, pairingRowIdentity, readPairing } from '../rows/pairing-table.ts';
import { nullIfDamaged } from '../rows/schemas.ts';
import { readSession, type SessionRow, sessionRow, sessionRowIdentity } from '../rows/session-table.ts';
import { readSetting, type SettingRow, settingRow, settingRowIdentity } from '../rows/setting-table.ts';

/** All that can be read of a database, damaged or not; sealed by {@link Salvage.sealing}. */
export interface Salvage {
  readonly sealing: Sealing;
  readonly settings: ReadonlyMap<string, SettingRow>;
  readonly appliances: readonly ApplianceRow[];
  readonly grants: ReadonlyMap<string, GrantRow>;
  readonly pairings: readonly PairingRow[];
  /** In the order of their numbers; of sessions and invites those that the hub has given. */
  readonly sessions: readonly SessionRow[];
  readonly invites: readonly InviteRow[];
  /** Of a sound database nobody needs it, and none is read. */
  readonly history: readonly HistoryRow[];
  /** Rows that are there, and whose content can't be opened or makes no sense, such as `grants/<appliance>`. */
  readonly unreadable: ReadonlySet<string>;
  /** How many sealed values could be opened: none where the key is another one. */
  readonly openedCount: number;
  /** What is wrong with the file as such, null where it is sound. */
  readonly damage: string | null;
}

/**
 * Reads whatever can be read, changing nothing; of a damaged table what comes before the damage and behind it.
 * @param keys those that it may be sealed with; the first where none opens anything
 * @param to how what is read is to be sealed; undefined for the key that opens it
 */
export function salvage(database: Database.Database, keys: readonly [Sealing, ...Sealing[]], to?: Sealing): Salvage {
  const unreadable = new Set<string>();
  let damage = findStructuralDamage(database);
  let opened = 0;

  function table<Row>(name: string, schema: v.GenericSchema<unknown, Row>, key: string): Row[] {
    const rows = new Map<unknown, Row>();
    for (const order of ['ASC', 'DESC']) {
      try {
        for (const raw of database.prepare(`SELECT * FROM ${name} ORDER BY ${key} ${order}`).iterate()) {
          const row = v.safeParse(schema, raw);
          if (row.success) rows.set(Reflect.get(Object(raw), key), row.output);
          else damage ??= `a row of ${name} makes no sense`;
        }
        break;
      } catch (error) {
        damage ??= errorCode(error);
      }
    }
    return [...rows.values()];
  }

  const rows = {
    settings: table('settings', settingRow, 'name'),
    appliances: table('appliances', applianceRow, 'id'),
    grants: table('grants', grantRow, 'appliance'),
    pairings: table('pairings', pairingRow, 'number'),
    sessions: table('sessions', sessionRow, 'number'),
    invites: table('invites', inviteRow, 'hash'),
  };
  const places = [
    ...rows.settings.map((row) => [settingRowIdentity(row), row.sealed] as const),
    ...rows.appliances.map((row) => [applianceRowIdentity(row), row.sealed] as const),
    ...rows.grants.map((row) => [grantRowIdentity(row), row.sealed] as const),
    ...rows.pairings.map((row) => [pairingRowIdentity(row), row.sealed] as const),
  ];
  const from = keys.find((key) => places.some(([place, sealed]) => canOpen(key, place, sealed))) ?? keys[0];
  const sealing = to ?? from;
  const isResealed = from !== sealing;

  /**
   * Rows with what is in them sealed as it is to be.
   * @param name names a row that can't be read, which is then taken as it is; null where it is left out
   */
  function checked<Row extends { readonly sealed: string | null }>(
    found: readonly Row[],
    place: (row: Row) => string,
    read: (row: Row, key: Sealing) => unknown,
    name: ((row: Row) => string) | null,
  ): Row[] {
    return found.flatMap((row) => {
      if (row.sealed === null) return [row];
      if (nullIfDamaged(() => read(row, from)) === null) {
        if (name === null) return [];
        unreadable.add(name(row));
        return [row];
      }
      opened += 1;
      return [isResealed ? { ...row, sealed: sealing.seal(place(row), from.open(place(row), row.sealed)) } : row];
    });
  }

  const settings = checked(rows.settings, settingRowIdentity, readSetting, settingRowIdentity);
  const appliances = checked(rows.appliances, applianceRowIdentity, readAppliance, ({ id }) => `appliances/${id}`);
  const grants = checked(rows.grants, grantRowIdentity, readGrant, ({ appliance }) => `grants/${appliance}`);
  const pairings = checked(rows.pairings, pairingRowIdentity, readPairing, ({ id }) => `pairings/${id}`);
  const sessions = checked(rows.sessions, sessionRowIdentity, readSession, null);
  const invites = checked(rows.invites, inviteRowIdentity, readInvite, null);
  const isSound = damage === null && unreadable.size === 0;
  return {
    sealing,
    settings: new Map(settings.map((row) => [row.name, row])),
    appliances,
    grants: new Map(grants.map((row) => [row.appliance, row])),
    pairings,
    sessions: sessions.sort((a, b) => a.number - b.number),
    invites,
    history: isSound ? [] : salvageHistory(database),
    unreadable,
    openedCount: opened,
    damage,
  };
}

/** What can be read of the history from its beginning on; where there is none, or all is damaged, nothing is lost that counts. */
function salvageHistory(database: Database.Database): HistoryRow[] {
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

function canOpen(key: Sealing, row: string, sealed: string | null): boolean {
  return sealed !== null && nullIfDamaged(() => key.open(row, sealed)) !== null;
}

/**
 * Looks at the hub's own settings, which every schema has, before a database is changed.
 * @throws Failure `store_key_wrong` where there are some, and no key opens any
 */
export function checkKeys(database: Database.Database, keys: readonly Sealing[]): void {
  const rows = database.prepare<[], SettingRow>('SELECT name, sealed FROM settings').all();
  if (
    rows.length === 0 ||
    rows.some(({ name, sealed }) => keys.some((key) => canOpen(key, settingRowIdentity({ name }), sealed)))
  ) {
    return;
  }
  throw new Failure('store_key_wrong', 'no key opens what is in the store');
}

function findStructuralDamage(database: Database.Database): string | null {
  try {
    const [first] = database.pragma('integrity_check(1)') as { integrity_check: string }[];
    if (first?.integrity_check !== 'ok') return first?.integrity_check ?? 'it can not be checked';
    return (database.pragma('foreign_key_check') as unknown[]).length > 0 ? 'a row belongs to no appliance' : null;
  } catch (error) {
    return errorCode(error);
  }
}

function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}
