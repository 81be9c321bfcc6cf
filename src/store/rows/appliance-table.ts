import * as v from 'valibot';
import type { Appliance, ClientCredentials } from '../../core/appliances/appliance.ts';
import { Failure } from '../../core/failure.ts';
import { instant } from '../../system/instant-schema.ts';
import type { Sql } from '../database/sql.ts';
import type { Sealing } from '../keys/sealing.ts';
import {
  applianceName,
  clientId,
  jsonOrNull,
  origin,
  parseJson,
  publicKeys,
  registrantAddress,
  scope,
} from './schemas.ts';

const text = v.string();
const optional = v.nullable(v.string());
const keySet = v.object({ keys: publicKeys });

/** Since when an appliance waits, and where it registered from. */
const waiting = v.nullable(v.object({ ...instant.entries, from: v.exactOptional(registrantAddress) }));

/** A row of `appliances`. */
export const applianceRow = v.object({
  id: v.pipe(text, v.uuid()),
  name: applianceName,
  scope,
  portal: text,
  /** Empty where there is none. */
  secret_hash: text,
  client_id: text,
  /** A JWK Set (RFC 7517, 5); where there is one, it counts. */
  jwks: optional,
  origin: text,
  waiting: optional,
  software_id: optional,
  mac: optional,
});

export type ApplianceRow = v.InferOutput<typeof applianceRow>;

/** The columns of `appliances`, and the values for them as {@link applianceValues} gives them. */
const COLUMNS = 'id, name, scope, portal, secret_hash, client_id, jwks, origin, waiting, software_id, mac';
const PLACES = '?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?';

/** An appliance in the order of {@link COLUMNS}. @param sealing null for one that is to stay unsigned */
function applianceValues(appliance: Appliance, sealing: Sealing | null): unknown[] {
  const { id, name, scope, portal, clientId, credentials, softwareId, waitingSince, registeredFrom: from } = appliance;
  const waits = waitingSince && { ...waitingSince, ...(from && { from }) };
  const row = {
    id,
    name,
    scope,
    portal,
    secret_hash: credentials.kind === 'secret' ? credentials.hash : '',
    client_id: clientId,
    jwks: credentials.kind === 'keys' ? JSON.stringify({ keys: credentials.keys }) : null,
    origin: appliance.origin,
    waiting: jsonOrNull(waits),
    software_id: softwareId,
  };
  return [...Object.values(row), sealing?.sign('appliances', row) ?? null];
}

/** @throws Failure `store_unreadable` where it was changed, or its keys, or how far it may be trusted, make no sense */
export function readAppliance(row: ApplianceRow, sealing: Sealing): Appliance {
  const where = `appliances/${row.id}`;
  if (!sealing.isSigned('appliances', row)) throw damaged(where);
  const waits = parseJson(waiting, where, row.waiting ?? 'null');
  return {
    ...bare(row),
    clientId: parsed(clientId, where, row.client_id),
    credentials: credentialsOf(row, where),
    origin: parsed(origin, where, row.origin),
    waitingSince: waits && { boot: waits.boot, uptime: waits.uptime, wall: waits.wall },
    ...(waits?.from && { registeredFrom: waits.from }),
  };
}

/** An appliance that can't be read: it keeps its place and its grant, and can't prove who it is. */
export function unreadableAppliance(row: ApplianceRow): Appliance {
  const credentials = { kind: 'none', damaged: true } as const;
  return { ...bare(row), clientId: row.client_id, credentials, origin: 'added', waitingSince: null };
}

function bare({ id, name, scope, portal, software_id }: ApplianceRow) {
  return { id, name, scope, portal, softwareId: software_id };
}

function credentialsOf({ secret_hash, jwks }: ApplianceRow, where: string): ClientCredentials {
  if (jwks !== null) return { kind: 'keys', keys: parseJson(keySet, where, jwks).keys };
  return secret_hash === '' ? { kind: 'none' } : { kind: 'secret', hash: secret_hash };
}

function parsed<const Schema extends v.GenericSchema>(
  schema: Schema,
  where: string,
  value: unknown,
): v.InferOutput<Schema> {
  const result = v.safeParse(schema, value);
  if (result.success) return result.output;
  throw damaged(where);
}

function damaged(where: string): Failure {
  return new Failure('store_unreadable', `${where} is damaged: put back a copy of the state directory`);
}

/** The appliances as rows. */
export class ApplianceTable {
  readonly #sql: Sql;
  readonly #damaged = new Set<string>();

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Ids of the appliances that can't prove who they are, because their rows were changed or can't be read. */
  get damaged(): ReadonlySet<string> {
    return this.#damaged;
  }

  all(): Appliance[] {
    this.#damaged.clear();
    return this.#sql.all<ApplianceRow>(`SELECT ${COLUMNS} FROM appliances ORDER BY name`).map((row) => this.#read(row));
  }

  /** @returns false where its id, its name or its client_id is taken */
  add(appliance: Appliance): boolean {
    return this.#sql.run(
      `INSERT INTO appliances (${COLUMNS}) VALUES (${PLACES}) ON CONFLICT DO NOTHING`,
      ...applianceValues(appliance, this.#sql.sealing),
    );
  }

  /** One that was damaged or changed stays unsigned, and so is damaged still: only removing it ends that. */
  change(appliance: Appliance): boolean {
    return this.#sql.run(
      `UPDATE OR IGNORE appliances SET (${COLUMNS}) = (${PLACES}) WHERE id = ?`,
      ...applianceValues(appliance, this.#damaged.has(appliance.id) ? null : this.#sql.sealing),
      appliance.id,
    );
  }

  remove(id: string): void {
    this.#sql.run('DELETE FROM appliances WHERE id = ?', id);
    this.#damaged.delete(id);
  }

  #read(row: ApplianceRow): Appliance {
    try {
      return readAppliance(row, this.#sql.sealing);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      this.#damaged.add(row.id);
      return unreadableAppliance(row);
    }
  }
}
